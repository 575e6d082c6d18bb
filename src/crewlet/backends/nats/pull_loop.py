"""Our own pull over the wire: one message asked for at a time, none lost or held when the asking ends (E-026)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Final

import msgspec
import structlog

from crewlet.backends.nats.jetstream_types import ns
from crewlet.backends.nats.wire import Message, Unsubscribe, Wire
from crewlet.base import limits
from crewlet.base.errors import CrewletError, Unavailable

__all__ = ["MailboxDeleted", "MailboxMissing", "PullLoop", "PullTiming"]

_log = structlog.get_logger(__name__)

_HEARTBEAT: Final = "100"
_EXPIRED: Final = "408"
_CONFLICT: Final = "409"
_NOBODY: Final = "503"
_LEFT_HEADER: Final = "Nats-Pending-Messages"


class MailboxDeleted(CrewletError):
    """The broker says that the durable consumer was deleted while we waited on it."""


class MailboxMissing(CrewletError):
    """Nobody at the broker answers for the durable consumer: it is gone, or it has no leader yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullTiming:
    """How long one request waits at the broker, how often it shows that it still does, and when we stop believing.

    ``deaf_check_s``: how often the broker is asked whether it knows of the request, ``deaf_confirm_s`` later again.
    """

    expires_s: float = limits.PULL_EXPIRES_S
    heartbeat_s: float = limits.PULL_HEARTBEAT_S
    silence_max_s: float = limits.PULL_SILENCE_MAX_S
    deaf_check_s: float = limits.DEAF_CHECK_EVERY_S
    deaf_confirm_s: float = limits.DEAF_CONFIRM_S


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
    ) -> None:
        self._timing = timing or PullTiming()
        self._wire = wire
        self._consumer = consumer
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._request = msgspec.json.encode(
            {"batch": 1, "expires": ns(self._timing.expires_s), "idle_heartbeat": ns(self._timing.heartbeat_s)}
        )
        self._strays = strays
        self._quiet = quiet
        self._inbox: _Inbox | None = None
        self._waiter: asyncio.Future[Message | _Cut] | None = None
        self._taken: list[Message] | None = None
        self._wanted = 0
        self._stopped = False
        self._heard_at = 0.0
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
            if not await self._gather(inbox, _request_for(count, within_s), taken, count, within_s):
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
        inbox = self._inbox
        try:
            if inbox is None:
                inbox = await self._enter_inbox()
            answer = await self._exchange(inbox)
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
        if answer.status == _EXPIRED:
            return None
        if answer.status == _CONFLICT and "deleted" in answer.description.lower():
            raise MailboxDeleted(f"{self._consumer}: {answer.description}")
        if answer.status == _NOBODY:
            raise MailboxMissing(f"{self._consumer}: nobody answers for it")
        _log.debug("pull_refused", consumer=self._consumer, status=answer.status, description=answer.description)
        await self._pause()
        return None

    async def _exchange(self, inbox: _Inbox) -> Message | _Cut:
        waiter = self._arm()
        watch = self._watch_silence()
        try:
            await self._wire.publish(self._subject, self._request, reply=inbox.subject)
            return await waiter
        except BaseException:
            self._give_back_unseen(waiter)
            raise
        finally:
            watch.cancel()
            self._waiter = None

    async def _gather(self, inbox: _Inbox, request: bytes, taken: list[Message], count: int, within_s: float) -> bool:
        """Fill ``taken``; true where the request is known to be over, so that its inbox can serve another."""
        waiter = self._arm()
        self._taken, self._wanted = taken, count
        alarm = asyncio.get_running_loop().call_later(within_s + self._timing.silence_max_s, self._cut, _Cut.SILENT)
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

    def _watch_silence(self) -> _SilenceWatch:
        self._heard_at = asyncio.get_running_loop().time()
        return _SilenceWatch(self._timing.silence_max_s, lambda: self._heard_at, partial(self._cut, _Cut.SILENT))

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
        inbox = self._inbox
        if inbox is None or inbox.subject != subject or self._waiter is None or self._waiter.done():
            if not message.status:
                self._strays(message)
            return
        self._heard_at = asyncio.get_running_loop().time()
        if self._taken is not None and not message.status:
            self._taken.append(message)
            if len(self._taken) >= self._wanted:
                self._waiter.set_result(message)
        elif message.status != _HEARTBEAT:
            # A replicated consumer sends a delivery once its members have noted it, but the end of a request at once:
            # what the request was granted may still be on its way, and given up it would come back a delivery dearer.
            self._wanted = self._granted(message)
            if self._taken is None or len(self._taken) >= self._wanted:
                self._waiter.set_result(message)
        elif not inbox.quiet_told:
            inbox.quiet_told = True
            self._quiet()

    def _granted(self, end: Message) -> int:
        """How many messages the request that ``end`` ends was given, arrived or not."""
        left = end.headers.get(_LEFT_HEADER, "")
        return self._wanted - int(left) if left.isdecimal() else 0


def _request_for(count: int, within_s: float) -> bytes:
    ask: dict[str, object] = {"batch": count, "max_bytes": limits.DRAIN_MAX_BYTES}
    return msgspec.json.encode(ask | ({"expires": ns(within_s)} if within_s > 0 else {"no_wait": True}))


class _SilenceWatch:
    """One timer that looks now and then instead of being set anew by each frame."""

    def __init__(self, max_s: float, heard_at: Callable[[], float], alarm: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._max_s = max_s
        self._heard_at = heard_at
        self._alarm = alarm
        self._timer = self._loop.call_later(max_s, self._look)

    def cancel(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        left_s = self._max_s - (self._loop.time() - self._heard_at())
        if left_s <= 0:
            self._alarm()
        else:
            self._timer = self._loop.call_later(left_s, self._look)
