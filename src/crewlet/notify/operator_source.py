"""Messages that an operator sends through the API: always to one seat, always owed an answer by the engine."""

from __future__ import annotations

from typing import Final

from crewlet.events import Event
from crewlet.events.types import RawWebhook
from crewlet.notify.contract import PayloadRefused
from crewlet.notify.prompt import Notice, PlainPrompt, Prompt
from crewlet.notify.threads import ThreadReader

__all__ = ["OPERATOR", "OperatorSource"]

OPERATOR: Final = "operator"


class _OperatorPrompt(PlainPrompt):
    """Each message is answered by itself: somebody waits for that very answer."""

    def partition_key(self, notice: Notice) -> str:
        return str(notice.metadata.get("message_id", ""))

    def conversation_identity(self, notice: Notice) -> str:
        return f"{notice.sender}:{notice.recipient}"

    def addressed(self, notice: Notice) -> bool:
        return True

    def reply(self, notice: Notice) -> str:
        return "engine"


class OperatorSource:
    """Routes a message to the seat it names; the answer is the turn's artifact."""

    name = OPERATOR
    prompt: Prompt = _OperatorPrompt()
    threads: ThreadReader | None = None

    def parse(self, raw: RawWebhook, event: Event) -> tuple[Notice, ...]:
        """One copy for the named seat. Raises ``PayloadRefused`` for a message without a text or a recipient."""
        if not raw.body.strip():
            message = "the message has no text"
            raise PayloadRefused(message)
        if not raw.recipient:
            message = "the message names no seat"
            raise PayloadRefused(message)
        return (
            Notice(
                recipient=raw.recipient,
                notification_type="message",
                sender=raw.sender,
                body=raw.body,
                metadata={"message_id": event.id},
            ),
        )
