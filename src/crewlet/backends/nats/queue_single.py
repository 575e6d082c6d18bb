"""An attachment whose unit of work is one delivery."""

from __future__ import annotations

from collections.abc import Collection

from crewlet.backends.nats.queue_attachment import QUIESCED, Attachment, AttachmentParts
from crewlet.backends.nats.wire import Message
from crewlet.queue import Defer, Handler, Subscription

__all__ = ["SingleAttachment"]


class SingleAttachment(Attachment):
    """Hands over one message at a time."""

    def __init__(
        self,
        subscription: Subscription,
        stream: str,
        parts: AttachmentParts,
        *,
        handler: Handler,
        holds: Collection[str] = (),
    ) -> None:
        super().__init__(subscription, stream, parts, holds=holds)
        self._handler = handler

    async def _collect(self) -> list[Message]:
        message = await self._pull.next()
        return [] if message is None else [message]

    async def _work(self, messages: list[Message]) -> None:
        held = self._taken_up(messages[0])
        if held is None:
            await self._given_back()
            return
        self._ack_clock.start([held])
        try:
            outcome = await self._outcome_of(self._handler(held.delivery), held.delivery)
        finally:
            self._ack_clock.stop()
        if self._detached:
            return
        if isinstance(outcome, Defer):
            self._stop_taking(QUIESCED)
        await self._settle([held], outcome)
