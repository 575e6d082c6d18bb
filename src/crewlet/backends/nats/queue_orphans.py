"""Messages that no delivery will reach any more: dead-lettered by whichever node hears of it first (E-040)."""

from __future__ import annotations

from typing import Final

import msgspec
import structlog

from crewlet import topics
from crewlet.backends.nats.consumer_settings import DeliveryMark, delivery_mark, recorded_pair
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import ApiError
from crewlet.backends.nats.pull_requests import MailboxDeleted, MailboxMissing
from crewlet.backends.nats.queue_attachment import Attachment, AttachmentParts
from crewlet.backends.nats.queue_dead_letters import DeadLetters
from crewlet.backends.nats.wire import Message
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.events import MalformedEvent, decode
from crewlet.queue import Ack, Nak, Outcome, Subscription, UnheardLetter, UnheardListeners

__all__ = ["ORPHANS", "OrphanAttachment"]

_log = structlog.get_logger(__name__)

ORPHANS: Final = Subscription(topics.ORPHAN_ADVISORIES, topics.ORPHANS_GROUP)
"""The one group of the fleet that hears the broker's last word on a message."""

_TERM: Final = b"+TERM"
_REASON: Final = "whoever held its last delivery never reported"


class OrphanAttachment(Attachment):
    """Buries what was lost with its holder.

    A process that dies during the last delivery neither buries nor terminates, and the broker offers the message no
    more: without this it would be gone for every consumer and stored for ever.
    """

    def __init__(
        self, parts: AttachmentParts, *, api: JetStream, dead_letters: DeadLetters, unheard: UnheardListeners
    ) -> None:
        super().__init__(ORPHANS, topics.STREAM_ADVISORIES, parts)
        self._api = api
        self._dead_letters = dead_letters
        self._unheard = unheard

    async def _collect(self) -> list[Message]:
        try:
            message = await self._pull.next()
        except MailboxDeleted as error:
            # Whoever deleted it did not mean that nobody should listen.
            raise MailboxMissing(str(error)) from error
        return [] if message is None else [message]

    async def _work(self, messages: list[Message]) -> None:
        message = messages[0]
        mark = delivery_mark(message.reply)
        assert mark is not None, message.reply
        outcome = await self._outcome(message)
        if not self._detached:
            await self._settlement.settle(self.subscription, message, mark, outcome)

    async def _outcome(self, message: Message) -> Outcome:
        try:
            advisory = msgspec.json.decode(message.payload, type=_Advisory)
        except msgspec.DecodeError as error:
            _log.warning("advisory_unreadable", error=str(error))
            return Ack()
        try:
            return Ack() if await self._bury(advisory) else Nak("the dead letter was not taken")
        except (Unavailable, ApiError) as error:
            return Nak(str(error))

    async def _bury(self, advisory: _Advisory) -> bool:
        """True where nothing is left to do: buried, or gone, or nobody's of ours."""
        info = await self._api.consumer_info(advisory.stream, advisory.consumer)
        owner = None if info is None else recorded_pair(info)
        if owner is None:
            return True
        stored = await self._api.message(advisory.stream, advisory.stream_seq)
        if stored is None:
            return True
        mark = DeliveryMark(advisory.stream, advisory.consumer, advisory.deliveries, advisory.stream_seq, 0)
        message = Message(stored.subject, stored.data, stored.headers)
        if not await self._dead_letters.keep(owner, message, mark, _REASON):
            return False
        await self._tell(owner, message)
        # In the name of this mailbox alone: another group may still be owed the same message.
        last = topics.acknowledgement(
            advisory.stream, advisory.consumer, deliveries=advisory.deliveries, seq=advisory.stream_seq
        )
        await self._parts.wire.request(last, _TERM, timeout_s=limits.SETTLE_TIMEOUT_S)
        return True

    async def _tell(self, owner: Subscription, message: Message) -> None:
        try:
            event = decode(message.payload)
        except MalformedEvent:
            return
        letter = UnheardLetter(subscription=owner, event=event, reason=_REASON, holder_lost=True)
        await self._unheard.tell(letter)


class _Advisory(msgspec.Struct, frozen=True):
    stream: str
    consumer: str
    stream_seq: int
    deliveries: int = 0
