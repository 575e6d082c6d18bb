"""Dead letters: the raw message, kept apart with a note of where it came from and why (E-039, E-040)."""

from __future__ import annotations

from typing import Final

import structlog

from crewlet import topics
from crewlet.backends.nats.consumer_settings import DeliveryMark
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import ApiError
from crewlet.backends.nats.queue_link import LinkWatch
from crewlet.backends.nats.wire import Message
from crewlet.base import limits
from crewlet.base.errors import PayloadTooLarge, Unavailable
from crewlet.queue import Subscription

__all__ = [
    "DELIVERIES_HEADER",
    "GROUP_HEADER",
    "REASON_HEADER",
    "SEQUENCE_HEADER",
    "STREAM_HEADER",
    "TOPIC_HEADER",
    "DeadLetters",
]

_log = structlog.get_logger(__name__)

TOPIC_HEADER: Final = "Crewlet-Topic"
GROUP_HEADER: Final = "Crewlet-Group"
STREAM_HEADER: Final = "Crewlet-Stream"
SEQUENCE_HEADER: Final = "Crewlet-Sequence"
DELIVERIES_HEADER: Final = "Crewlet-Deliveries"
REASON_HEADER: Final = "Crewlet-Reason"


class DeadLetters:
    """The stream of what could not be worked."""

    def __init__(self, api: JetStream, link: LinkWatch) -> None:
        self._api = api
        self._link = link

    async def keep(self, subscription: Subscription, message: Message, mark: DeliveryMark, reason: str) -> bool:
        """Store one copy of the message; false where the broker would not take it after every attempt.

        The copy's id is where the original is stored, and for whom, so however often this is repeated after a crash
        between the copy and its termination, the dead-letter stream holds one.
        """
        subject = topics.dead_letter(subscription.topic, subscription.group)
        why = "the link is down"
        for attempt in range(limits.DEAD_LETTER_ATTEMPTS_MAX):
            try:
                await self._api.publish(
                    subject,
                    message.payload,
                    message_id=f"{mark.stream}.{mark.stream_seq}.{mark.consumer}",
                    headers=_note(subscription, mark, reason),
                )
            except (Unavailable, ApiError) as error:
                why = str(error)
                await self._link.settled(attempt)
            except PayloadTooLarge as error:
                why = str(error)
                break
            else:
                _log.warning("dead_lettered", **_facts(subscription, mark), reason=reason)
                return True
        _log.error("dead_letter_failed", **_facts(subscription, mark), reason=reason, error=why)
        return False


def _note(subscription: Subscription, mark: DeliveryMark, reason: str) -> dict[str, str]:
    return {
        TOPIC_HEADER: subscription.topic,
        GROUP_HEADER: subscription.group,
        STREAM_HEADER: mark.stream,
        SEQUENCE_HEADER: str(mark.stream_seq),
        DELIVERIES_HEADER: str(mark.deliveries),
        REASON_HEADER: _one_line(reason),
    }


def _one_line(text: str) -> str:
    """``text`` as a header can carry it."""
    plain = " ".join(text.encode("ascii", "replace").decode("ascii").split())
    return plain[: limits.DEAD_LETTER_REASON_MAX_CHARS]


def _facts(subscription: Subscription, mark: DeliveryMark) -> dict[str, object]:
    return {
        "topic": subscription.topic,
        "group": subscription.group,
        "stream_seq": mark.stream_seq,
        "deliveries": mark.deliveries,
    }
