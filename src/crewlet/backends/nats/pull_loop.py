"""Our own pull over the wire: one message asked for at a time, none lost or held when the asking ends (E-026)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

import structlog

from crewlet.backends.nats.pull_requests import (
    HEARTBEAT,
    PullTiming,
    request_for_many,
    request_for_one,
    undelivered,
    was_refused,
)
from crewlet.backends.nats.pull_silence import SilenceWatch
from crewlet.backends.nats.wire import Message, Unsubscribe, Wire
from crewlet.base import limits
from crewlet.base.errors import Unavailable

__all__ = ["PullLoop"]

_log = structlog.get_logger(__name__)


class _Cut(Enum):
    """Why an answer was not waited for any longer."""

    STOPPED = auto()
    LINK_DOWN = auto()
    LINK_UP = auto()
    SILENT = auto()
    UNKNOWN_TO_BROKER = auto()
    PAUSE_OVER = auto()


@dataclass(slots=True)
class _Inbox:
    subject: str
    unsubscribe: Unsubscribe
    quiet_told: bool = False


class PullLoop:
    """Asks one durable consumer for one message whenever :meth:`next` is awaited.

    A request for a single message needs no ``no_wait`` round first: the broker answers a waiting one at once when
    there is mail. An inbox lives as long as its requests are answered; after a lost link, a silence or a stop the next
    request has another one, so that an answer to a request that we gave up on cannot be taken for a fresh one. Such a
    message goes to ``strays``, whose owner hands it back. ``quiet`` is called once for each inbox, when the broker
    first says that it has nothing for us.
    """

    def __init__(
        self,
        wire: Wire,
        stream: str,
        consumer: str,
        *,
        strays: Callable[[Message], None],
        quiet: Callable[[], None],
        timing: PullTiming | None = None,
        silence: SilenceWatch | None = None,
    ) -> None:
        self._timing = timing or PullTiming()
        self._wire = wire
        self._consumer = consumer
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._request = request_for_one(self._timing)
        self._strays = strays
        self._quiet = quiet
        self._inbox: _Inbox | None = None
        self._waiter: asyncio.Future[Message | _Cut] | None = None
        self._taken: list[Message] | None = None
        self._wanted = 0
        self._stopped = False
        self._silence = silence or SilenceWatch(self._timing.silence_max_s)
        self._went_silent = partial(self._cut, _Cut.SILENT)
        self._backoff_s = limits.PULL_BACKOFF_FIRST_S
        self._unwatch = (
            wire.on_disconnected(partial(self._cut, _Cut.LINK_DOWN)),
            wire.on_reconnected(partial(self._cut, _Cut.LINK_UP)),
        )

    async def next(self) -> Message | None:
        """The next message, fetched now; ``None`` once :meth:`stop` was called, and then nothing more will arrive.

        Raises ``MailboxDeleted``, ``MailboxMissing``. Waits out lost links, silences and elections by itself.
        """
        try:
            while not self._stopped:
                if not self._wire.connected:
                    await self._wait(limits.PULL_BACKOFF_MAX_S)
                    continue
                message = await self._ask()
                if message is not None:
                    return message
        except BaseException:
            await self._leave_inbox()
            raise
        await self._leave_inbox()
        return None

    async def more(self, count: int, within_s: float = 0.0) -> list[Message]:
        """Up to ``count`` further messages: what is there now, and with ``within_s`` what comes in that time.

        Fewer when stopped, when the link drops or when the broker refuses: :meth:`next` finds out why. Cancelled, it
        hands what it was given to ``strays``.
        """
        taken: list[Message] = []
        if count <= 0 or self._stopped or not self._wire.connected:
            return taken
        try:
            inbox = self._inbox or await self._enter_inbox()
            if not await self._gather(inbox, request_for_many(count, within_s), taken, count, within_s):
                await self._leave_inbox()
        except Unavailable:
            await self._leave_inbox()
        except BaseException:
            for message in taken:
                self._strays(message)
            await self._leave_inbox()
            raise
        return taken

    def stop(self) -> None:
        """Make :meth:`next` return ``None``, now and until :meth:`resume`."""
        self._stopped = True
        self._cut(_Cut.STOPPED)

    def resume(self) -> None:
        """Let :meth:`next` ask again."""
        self._stopped = False

    def ask_anew(self) -> None:
        """Give up the request that waits, if one does, for another on a fresh inbox."""
        self._cut(_Cut.UNKNOWN_TO_BROKER)

    async def close(self) -> None:
        """Leave nothing behind at the broker; not to be called while :meth:`next` is awaited elsewhere."""
        self.stop()
        for remove in self._unwatch:
            remove()
        await self._leave_inbox()

    async def _ask(self) -> Message | None:
        try:
            answer = await self._exchange(self._inbox or await self._enter_inbox())
        except Unavailable:
            await self._leave_inbox()
            await self._pause()
            return None
        if isinstance(answer, Message):
            return await self._read(answer)
        if answer is _Cut.SILENT:
            _log.info("pull_went_silent", consumer=self._consumer, after_s=self._timing.silence_max_s)
        await self._leave_inbox()
        return None

    async def _read(self, answer: Message) -> Message | None:
        if not answer.status:
            self._backoff_s = limits.PULL_BACKOFF_FIRST_S
            return answer
        if was_refused(self._consumer, answer):
            status, description = answer.status, answer.description
            _log.debug("pull_refused", consumer=self._consumer, status=status, description=description)
            await self._pause()
        return None

    async def _exchange(self, inbox: _Inbox) -> Message | _Cut:
        waiter = self._arm()
        self._silence.begin(self._went_silent)
        try:
            await self._wire.publish(self._subject, self._request, reply=inbox.subject)
            return await waiter
        except BaseException:
            self._give_back_unseen(waiter)
            raise
        finally:
            self._silence.end(self._went_silent)
            self._waiter = None

    async def _gather(self, inbox: _Inbox, request: bytes, taken: list[Message], count: int, within_s: float) -> bool:
        """Fill ``taken``; true where the request is known to be over, so that its inbox can serve another."""
        waiter = self._arm()
        self._taken, self._wanted = taken, count
        alarm = asyncio.get_running_loop().call_later(within_s + self._timing.silence_max_s, self._went_silent)
        try:
            await self._wire.publish(self._subject, request, reply=inbox.subject)
            return isinstance(await waiter, Message)
        finally:
            alarm.cancel()
            self._waiter, self._taken = None, None

    def _arm(self) -> asyncio.Future[Message | _Cut]:
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    def _give_back_unseen(self, waiter: asyncio.Future[Message | _Cut]) -> None:
        """A message may have come in the same instant in which its waiter was cancelled."""
        if waiter.done() and not waiter.cancelled():
            answer = waiter.result()
            if isinstance(answer, Message) and not answer.status:
                self._strays(answer)

    async def _pause(self) -> None:
        await self._wait(self._backoff_s)
        self._backoff_s = min(2 * self._backoff_s, limits.PULL_BACKOFF_MAX_S)

    async def _wait(self, seconds: float) -> None:
        """Wait so long, or until the link changes or we are stopped."""
        if self._stopped:
            return
        waiter = self._arm()
        alarm = asyncio.get_running_loop().call_later(seconds, self._cut, _Cut.PAUSE_OVER)
        try:
            await waiter
        finally:
            alarm.cancel()
            self._waiter = None

    def _cut(self, cut: _Cut) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(cut)

    async def _enter_inbox(self) -> _Inbox:
        subject = self._wire.new_inbox()
        unsubscribe = await self._wire.subscribe(subject, partial(self._on_frame, subject))
        self._inbox = _Inbox(subject, unsubscribe)
        return self._inbox

    async def _leave_inbox(self) -> None:
        """End the interest in what we asked for; what was on its way still arrives meanwhile, as a stray."""
        inbox, self._inbox = self._inbox, None
        if inbox is not None:
            await inbox.unsubscribe()

    def _on_frame(self, subject: str, message: Message) -> None:
        inbox, waiter = self._inbox, self._waiter
        if inbox is None or inbox.subject != subject or waiter is None or waiter.done():
            if not message.status:
                self._strays(message)
        elif not message.status:
            self._deliver(message, waiter)
        elif message.status != HEARTBEAT:
            self._end(message, waiter)
        else:
            self._silence.heard(self._went_silent)
            if not inbox.quiet_told:
                inbox.quiet_told = True
                self._quiet()

    def _deliver(self, message: Message, waiter: asyncio.Future[Message | _Cut]) -> None:
        if self._taken is not None:
            self._taken.append(message)
            if len(self._taken) < self._wanted:
                return
        waiter.set_result(message)

    def _end(self, end: Message, waiter: asyncio.Future[Message | _Cut]) -> None:
        if self._taken is not None:
            # A replicated consumer sends a delivery once its members have noted it, but the end of a request at once:
            # what the request was granted may still be on its way, and given up it would come back a delivery dearer.
            left = undelivered(end)
            self._wanted = 0 if left is None else self._wanted - left
            if len(self._taken) < self._wanted:
                return
        waiter.set_result(end)
