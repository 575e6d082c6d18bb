"""Saboteurs of the notification valve: who counts, against what, and what an outage means."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from random import Random
from typing import ClassVar

from crewlet.base.errors import Unavailable
from crewlet.coordination import RateValve, RateWindow, RecordStore
from crewlet.coordination.records.rate_valve import let_through
from crewlet.coordination.records.stored import change_stored, put_stored, read_stored
from crewlet.testing.contracts.slot_rate import RateValvePromises

__all__ = ["RATE_FAULTS"]


class RateFault(RateValve):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]

    async def second(self) -> int:
        """The second on the store's clock."""
        return math.floor((await self._store.time()).earliest.timestamp())


class CountsPerNode(RateFault):
    """Each node has a valve of its own."""

    caught_by = RateValvePromises.test_four_nodes_let_through_what_one_may

    def __init__(self, store: RecordStore, chance: Random) -> None:
        super().__init__(store, chance)
        self._counts: dict[tuple[str, int], int] = {}

    async def _counted(self, handle: str, cap: int) -> bool:
        window = (handle, await self.second())
        self._counts[window] = self._counts.get(window, 0) + 1
        return self._counts[window] <= cap


class CountsWithoutComparing(RateFault):
    """A count is written over whatever was counted meanwhile."""

    caught_by = RateValvePromises.test_four_nodes_let_through_what_one_may

    async def _counted(self, handle: str, cap: int) -> bool:
        second, key = await self.second(), f"seat.{handle}"
        standing = await read_stored(self._store, RateWindow, key)
        window = let_through(standing and standing.record, handle=handle, second=second, cap=cap)
        if window is not None:
            await put_stored(self._store, key, window)
        return window is not None


class TheWindowStays(RateFault):
    """No second is another."""

    caught_by = RateValvePromises.test_the_next_second_lets_through_again

    async def _counted(self, handle: str, cap: int) -> bool:
        window = await change_stored(
            self._store,
            RateWindow,
            f"seat.{handle}",
            lambda standing: let_through(standing, handle=handle, second=0, cap=cap),
        )
        return window is not None


class OneValveForAll(RateFault):
    """All seats share one."""

    caught_by = RateValvePromises.test_a_seats_storm_shuts_no_other_seats_valve

    async def _counted(self, handle: str, cap: int) -> bool:
        return await super()._counted("everybody", cap)


class TriesOnce(RateFault):
    """Who lost the race does not pass."""

    caught_by = RateValvePromises.test_what_is_below_the_cap_passes_however_many_count_at_once

    async def _counted(self, handle: str, cap: int) -> bool:
        second = await self.second()
        window = await change_stored(
            self._store,
            RateWindow,
            f"seat.{handle}",
            lambda standing: let_through(standing, handle=handle, second=second, cap=cap),
            pauses_s=(),
        )
        return window is not None


class OpensInAnOutage(RateFault):
    """What cannot be counted passes."""

    caught_by = RateValvePromises.test_what_cannot_be_counted_does_not_pass

    async def _counted(self, handle: str, cap: int) -> bool:
        try:
            return await super()._counted(handle, cap)
        except Unavailable:
            return True


class OffIsShut(RateFault):
    """A cap of 0 lets nothing through."""

    caught_by = RateValvePromises.test_a_valve_that_is_off_asks_nobody

    async def admits(self, handle: str, *, cap: int) -> bool:
        return cap > 0 and await super().admits(handle, cap=cap)


class KeepsEveryWindow(RateFault):
    """Each second is a record of its own."""

    caught_by = RateValvePromises.test_a_window_takes_the_place_of_the_one_before_it

    async def _counted(self, handle: str, cap: int) -> bool:
        return await super()._counted(f"{handle}-{await self.second()}", cap)


RATE_FAULTS: tuple[type[RateFault], ...] = (
    CountsPerNode,
    CountsWithoutComparing,
    TheWindowStays,
    OneValveForAll,
    TriesOnce,
    OpensInAnOutage,
    OffIsShut,
    KeepsEveryWindow,
)
