"""What a person's pause does on this node: the held inbox, the deferred delivery, the stopped turn (S0, S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import StoppedByPerson, Unavailable
from crewlet.base.stop import Stop
from crewlet.base.tasks import Tasks
from crewlet.coordination import PauseCopy, RecordStore, SeatPause
from crewlet.node.seat_holds import PAUSED, SeatHolds

__all__ = ["SeatPausing"]

_log = structlog.get_logger(__name__)


class SeatPausing:
    """Follows the company's pauses and has the seats of this node obey them.

    While nothing is known of the pauses, every delivery is deferred: unknown is not unpaused (C-036).
    """

    def __init__(self, store: RecordStore, holds: SeatHolds, clock: Clock) -> None:
        self._holds = holds
        self._stops: dict[str, SeatPause] = {}
        self._tasks = Tasks("seat_pausing")
        self._copy = PauseCopy(store, clock, self._changed, on_failure=self._followed_no_more)

    async def start(self) -> None:
        """Follow the pauses; returns once they are known, or have been waited for long enough."""
        self._copy.start()
        self._tasks.start("known", self._go_on_once_known())
        try:
            async with asyncio.timeout(limits.PAUSES_KNOWN_WAIT_S):
                await self._copy.wait_known()
        except TimeoutError:
            _log.warning("seat_pauses_unread", waited_s=limits.PAUSES_KNOWN_WAIT_S)

    async def close(self) -> None:
        """Follow them no more."""
        await self._tasks.close()
        await self._copy.close()

    @property
    def trouble(self) -> str:
        """What to tell people where pauses are not followed; empty where they are."""
        if not self._copy.known:
            return "which seats are paused is not known yet: no turn starts"
        behind_s = self._copy.behind_s
        return f"pauses have not been followed for {behind_s:.0f} s" if behind_s > limits.PAUSES_BEHIND_TOLD_S else ""

    def paused(self, handle: str) -> SeatPause | None:
        """The seat's pause, if any. Raises ``Unavailable`` while nothing is known."""
        return self._copy.paused(handle)

    def every(self) -> Mapping[str, SeatPause] | None:
        """Every pause, by seat; ``None`` while nothing is known."""
        return self._copy.every() if self._copy.known else None

    def withheld(self, handle: str) -> str:
        """Why no turn of the seat may start for a pause's sake; empty where none stands."""
        try:
            pause = self._copy.paused(handle)
        except Unavailable as unknown:
            return str(unknown)
        return "" if pause is None else f"seat {handle!r} is paused by {pause.by}"

    def stop(self, handle: str) -> Stop:
        """What ends a turn of the seat that starts now, once somebody pauses it and stops what runs."""
        return _SeatStop(handle, self)

    def stopped_by(self, handle: str) -> SeatPause | None:
        """The newest pause of the seat that stops, or stopped, what ran; it may be lifted by now."""
        standing = self._copy.paused(handle) if self._copy.known else None
        return standing if standing is not None and standing.stop_running else self._stops.get(handle)

    async def _changed(self, handle: str, pause: SeatPause | None) -> None:
        if pause is None:
            await self._resumed(handle)
            return
        if pause.stop_running:
            # Kept past the resume: whoever pauses, stops and resumes within one round of the turn means the stop.
            self._stops[handle] = pause
        await self._holds.hold(handle, PAUSED)
        _log.info("seat_held_for_pause", seat=handle, by=pause.by, stop_running=pause.stop_running)

    async def _resumed(self, handle: str) -> None:
        await self._holds.release(handle, PAUSED)
        _log.info("seat_pause_lifted", seat=handle)

    async def _go_on_once_known(self) -> None:
        await self._copy.wait_known()
        for handle in self._holds.seats():
            if not self.withheld(handle):
                # It was held by nothing but our ignorance: the lift tells whoever waits.
                await self._holds.release(handle, PAUSED)

    def _followed_no_more(self, task: str, failure: BaseException) -> None:
        """A defect of ours ended the following: begin again, a pause that nobody follows is none."""
        _log.error("seat_pauses_lost", task=task, error=repr(failure))
        self._tasks.start("again", self._again())

    async def _again(self) -> None:
        await asyncio.sleep(limits.PAUSE_WATCH_BACKOFF_MAX_S)
        self._copy.start()


class _SeatStop:
    """The stop of one turn."""

    def __init__(self, handle: str, pausing: SeatPausing) -> None:
        self._handle = handle
        self._pausing = pausing
        self._before = pausing.stopped_by(handle)

    def check(self) -> None:
        """Raise ``StoppedByPerson`` once a pause that came after the turn's start asks for it."""
        pause = self._pausing.stopped_by(self._handle)
        if pause is not None and pause != self._before:
            raise StoppedByPerson(
                f"{pause.by} stopped this turn" + (f": {pause.reason}" if pause.reason else ""),
                by=pause.by,
                by_seat=pause.by_seat,
                reason=pause.reason,
            )
