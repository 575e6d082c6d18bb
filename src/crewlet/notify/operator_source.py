"""Messages that an operator sends through the API: always to one seat, always owed an answer by the engine."""

from __future__ import annotations

from crewlet.base import limits
from crewlet.events import Event
from crewlet.events.types import RawWebhook
from crewlet.notify.contract import PayloadRefused, Routed

__all__ = ["OPERATOR", "OperatorSource"]

OPERATOR = "operator"


class OperatorSource:
    """Routes a message to the seat it names; the answer is the turn's artifact."""

    name = OPERATOR

    def parse(self, raw: RawWebhook, event: Event) -> tuple[Routed, ...]:
        """One copy for the named seat. Raises ``PayloadRefused`` for a message without a text or a recipient."""
        if not raw.body.strip():
            message = "the message has no text"
            raise PayloadRefused(message)
        if not raw.recipient:
            message = "the message names no seat"
            raise PayloadRefused(message)
        return (
            Routed(
                recipient=raw.recipient,
                notification_type="message",
                sender=raw.sender,
                salient_body=raw.body[: limits.SALIENT_BODY_MAX_CHARS],
                body=raw.body,
                metadata={"message_id": event.id},
                addressed=True,
                reply="engine",
                partition_key=f"{OPERATOR}:{event.id}",
                conversation_identity=f"{OPERATOR}:{raw.sender}:{raw.recipient}",
            ),
        )
