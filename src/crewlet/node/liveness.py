"""Which loops of this node still turn: one that does not is a problem on ``/health``, and in the end the node's end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from crewlet.base.clock import Clock
from crewlet.base.tasks import Tasks
from crewlet.seats import Watchdog

__all__ = ["Liveness"]

_EVENT_LOOP: Final = "the event loop"


class Liveness:
    """Beats of this node's loops. ``patience_s`` names the loops that must turn, and for how long each may not.

    ``watched`` are those of them whose standing still proves that this process owns nothing any more; with the event
    loop itself they are the watchdog's. Without a ``watchdog`` nothing is ended.
    """

    def __init__(
        self,
        clock: Clock,
        watchdog: Watchdog | None,
        *,
        patience_s: Mapping[str, float],
        watched: frozenset[str],
    ) -> None:
        self._clock = clock
        self._watchdog = watchdog
        self._patience_s = patience_s
        self._watched = watched
        self._beaten_at_s: dict[str, float] = {}
        self._tasks = Tasks("liveness")

    def beat(self, loop: str) -> None:
        """``loop`` turned."""
        self._beaten_at_s[loop] = self._clock.elapsed_s()
        if self._watchdog is not None and loop in self._watched:
            self._watchdog.beat(loop)

    def start(self) -> None:
        """Watch from now on."""
        if self._watchdog is not None:
            self._watchdog.beat(_EVENT_LOOP)
            self._watchdog.arm()
            self._tasks.start("beat", self._keep_beating(self._watchdog))

    async def stop(self) -> None:
        """Watch no more: an ending node may block its loop for as long as it must (S-168)."""
        if self._watchdog is not None:
            self._watchdog.disarm()
        await self._tasks.close()

    def problems(self) -> tuple[str, ...]:
        """The loops that have not turned for longer than they may, once they had turned at all."""
        now_s = self._clock.elapsed_s()
        return tuple(
            f"the {loop} loop has not turned for {now_s - beaten_at_s:.0f} s"
            for loop, beaten_at_s in self._beaten_at_s.items()
            if now_s - beaten_at_s > self._patience_s.get(loop, float("inf"))
        )

    async def _keep_beating(self, watchdog: Watchdog) -> None:
        while True:
            await asyncio.sleep(watchdog.beat_every_s)
            watchdog.beat(_EVENT_LOOP)
