"""Events that nobody waits for: handed to the broker one behind another, its word on each heard in passing."""

from __future__ import annotations

import asyncio

import structlog

from crewlet.backends.nats.jetstream_api import read_answer
from crewlet.backends.nats.jetstream_types import ApiError, PubAck
from crewlet.backends.nats.wire import Message, Unsubscribe, Wire
from crewlet.base import limits
from crewlet.base.errors import Unavailable

__all__ = ["LiveEvents"]

_log = structlog.get_logger(__name__)


class LiveEvents:
    """Sends events without waiting, and keeps count of those that the broker did not take.

    At most ``limits.LIVE_UNCONFIRMED_MAX`` are on their way. What is lost is logged as ``live_events_lost``, at most
    once in ``limits.LIVE_LOSSES_TOLD_EVERY_S``. :meth:`open` comes first, :meth:`close` last.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._inbox = wire.new_inbox()
        self._sent = 0
        self._unsubscribe: Unsubscribe | None = None
        # Those without the broker's word, the oldest first: where it is to say it, and when they were sent.
        self._unconfirmed: dict[str, float] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._untold = 0
        self._telling: asyncio.TimerHandle | None = None
        self._closed = False
        self._unwatch = wire.on_disconnected(self._link_lost)

    @property
    def unconfirmed(self) -> int:
        """How many are on their way."""
        return len(self._unconfirmed)

    async def open(self) -> None:
        """Listen to what the broker says."""
        self._unsubscribe = await self._wire.subscribe(f"{self._inbox}.*", self._heard)

    async def close(self) -> None:
        """Listen no longer; what is on its way is not waited for."""
        self._closed = True
        self._unwatch()
        self._unconfirmed.clear()
        if self._alarm is not None:
            self._alarm.cancel()
        if self._telling is not None:
            self._telling.cancel()
            self._tell("told as the queue closes")
        if self._unsubscribe is not None:
            await self._unsubscribe()

    async def send(self, topic: str, payload: bytes) -> None:
        """Hand it to the link, behind whatever was handed to it before.

        Raises ``Unavailable`` where it was not: the link is down, or too many are on their way.
        """
        if self._closed:
            raise Unavailable(f"{topic}: the queue is closed")
        if len(self._unconfirmed) >= limits.LIVE_UNCONFIRMED_MAX:
            raise Unavailable(f"{topic}: {len(self._unconfirmed)} live events wait for the broker's word already")
        self._sent += 1
        word = f"{self._inbox}.{self._sent}"
        loop = asyncio.get_running_loop()
        self._unconfirmed[word] = loop.time()
        try:
            await self._wire.publish(topic, payload, reply=word)
        except BaseException:
            # The caller hears of it.
            self._unconfirmed.pop(word, None)
            raise
        if self._alarm is None:
            self._alarm = loop.call_later(limits.BROKER_REQUEST_TIMEOUT_S, self._look_for_silence)

    def _heard(self, message: Message) -> None:
        if self._unconfirmed.pop(message.subject, None) is None:
            return
        if message.status:
            self._lose(1, f"no stream takes it ({message.status} {message.description})")
            return
        try:
            read_answer(message.subject, message.payload, PubAck)
        except (ApiError, Unavailable) as refused:
            self._lose(1, str(refused))

    def _look_for_silence(self) -> None:
        """One alarm for all of them, set anew for the oldest while there are any."""
        loop = asyncio.get_running_loop()
        self._alarm = None
        silent = 0
        for word, sent_s in [*self._unconfirmed.items()]:
            left_s = sent_s + limits.BROKER_REQUEST_TIMEOUT_S - loop.time()
            if left_s > 0:
                self._alarm = loop.call_later(left_s, self._look_for_silence)
                break
            del self._unconfirmed[word]
            silent += 1
        if silent:
            self._lose(silent, f"no word within {limits.BROKER_REQUEST_TIMEOUT_S:g} s")

    def _link_lost(self) -> None:
        if self._unconfirmed:
            lost = len(self._unconfirmed)
            self._unconfirmed.clear()
            self._lose(lost, "the link dropped before the broker's word came")

    def _lose(self, count: int, why: str) -> None:
        self._untold += count
        if self._telling is None:
            loop = asyncio.get_running_loop()
            self._telling = loop.call_later(limits.LIVE_LOSSES_TOLD_EVERY_S, self._tell, why)

    def _tell(self, why: str) -> None:
        lost, self._untold, self._telling = self._untold, 0, None
        _log.warning("live_events_lost", count=lost, error=why)
