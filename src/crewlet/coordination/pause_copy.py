"""One node's copy of the seat pauses: unknown until the store's first answer, and followed from then on (S0)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.coordination.contract import Change, RecordStore, Watch
from crewlet.coordination.records.codec import decode_record
from crewlet.coordination.records.seat_pauses import SEAT_PAUSES_PATTERN, SeatPause

__all__ = ["PauseCopy", "PauseEdge"]

_log = structlog.get_logger(__name__)

PauseEdge = Callable[[str, SeatPause | None], Awaitable[None]]
"""Told of a seat whose pause changed: the pause that stands, or ``None`` once it is lifted."""


class PauseCopy:
    """The pauses as the store last told this node, at no cost to whoever asks.

    Which way it fails: until the first answer nothing is known, and :meth:`paused` raises ``Unavailable``, so that the
    asker defers. Once known, an outage neither lifts a pause nor makes one: the last answer is served until the next
    replaces it. What is set meanwhile is not seen here; but a bucket that answers nobody takes no pause either, and a
    node that is cut off alone renews no lease and soon admits nothing. ``behind_s`` says how long it has been.

    ``on_edge`` is told of each seat whose pause changed, one after another, and again where it raises a
    ``CrewletError``; never of what it was told before, nor of what came and went while it was busy. Anything else that
    it raises ends the following, as ``on_failure`` then hears.
    """

    def __init__(
        self,
        store: RecordStore,
        clock: Clock,
        on_edge: PauseEdge,
        *,
        on_failure: Callable[[str, BaseException], None] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._on_edge = on_edge
        self._pauses: dict[str, SeatPause] | None = None
        self._told: dict[str, SeatPause] = {}
        self._broken_at_s: float | None = clock.elapsed_s()
        self._answered = asyncio.Event()
        self._stirred = asyncio.Event()
        self._tasks = Tasks("pause_copy", on_failure)

    @property
    def known(self) -> bool:
        """Whether the store has answered once."""
        return self._pauses is not None

    @property
    def behind_s(self) -> float:
        """How long nothing has been followed, in seconds; 0 while it is."""
        return 0.0 if self._broken_at_s is None else self._clock.elapsed_s() - self._broken_at_s

    def paused(self, handle: str) -> SeatPause | None:
        """The seat's pause, or ``None`` where it is not paused. Raises ``Unavailable`` while nothing is known."""
        if self._pauses is None:
            raise Unavailable("which seats are paused is not known yet")
        return self._pauses.get(handle)

    def every(self) -> Mapping[str, SeatPause]:
        """Every pause, by seat. Raises ``Unavailable`` while nothing is known."""
        if self._pauses is None:
            raise Unavailable("which seats are paused is not known yet")
        return dict(self._pauses)

    async def wait_known(self) -> None:
        """Return once the store has answered; the caller sets the bound."""
        await self._answered.wait()

    def start(self) -> None:
        """Follow the store until :meth:`close`."""
        self._tasks.start("follow", self._run())

    async def close(self) -> None:
        """Follow no more; what is known stays as it is."""
        await self._tasks.close()

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow())
                group.create_task(self._tell())
        finally:
            self._note_broken()

    async def _follow(self) -> None:
        pause_s = limits.PAUSE_WATCH_BACKOFF_FIRST_S
        while True:
            opened_s = self._clock.elapsed_s()
            try:
                async with self._store.watch(SEAT_PAUSES_PATTERN) as watch:
                    await self._follow_one(watch)
            except Unavailable as error:
                self._note_broken()
                _log.warning("seat_pauses_not_followed", known=self.known, retry_s=pause_s, error=str(error))
            # One that broke at once is opened more and more seldom: each opening costs the store a listing.
            lasted = self._clock.elapsed_s() - opened_s > limits.PAUSE_WATCH_BACKOFF_MAX_S
            pause_s = limits.PAUSE_WATCH_BACKOFF_FIRST_S if lasted else pause_s
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, limits.PAUSE_WATCH_BACKOFF_MAX_S)

    def _note_broken(self) -> None:
        if self._broken_at_s is None:
            self._broken_at_s = self._clock.elapsed_s()

    async def _follow_one(self, watch: Watch) -> None:
        by_key = {record.key: decode_record(SeatPause, record.value) for record in watch.answer}
        self._replace(by_key)
        self._broken_at_s = None
        _log.debug("seat_pauses_followed", paused=len(by_key))
        while True:
            _apply(by_key, await watch.next())
            self._replace(by_key)

    def _replace(self, by_key: dict[str, SeatPause]) -> None:
        self._pauses = {pause.handle: pause for pause in by_key.values()}
        self._answered.set()
        self._stirred.set()

    async def _tell(self) -> None:
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            if not await self._told_all():
                await asyncio.sleep(limits.PAUSE_TOLD_AGAIN_S)
                self._stirred.set()

    async def _told_all(self) -> bool:
        now = self._pauses or {}
        told = [await self._told_of(handle, now.get(handle)) for handle in sorted({*now, *self._told})]
        return all(told)

    async def _told_of(self, handle: str, pause: SeatPause | None) -> bool:
        if self._told.get(handle) == pause:
            return True
        try:
            await self._on_edge(handle, pause)
        except CrewletError as error:
            _log.warning("seat_pause_not_applied", handle=handle, paused=pause is not None, error=str(error))
            return False
        if pause is None:
            self._told.pop(handle, None)
        else:
            self._told[handle] = pause
        return True


def _apply(by_key: dict[str, SeatPause], change: Change) -> None:
    if change.record is None:
        by_key.pop(change.key, None)
    else:
        by_key[change.key] = decode_record(SeatPause, change.record.value)
