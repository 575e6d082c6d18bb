"""The notification valve: how many notifications a seat was let through in a second, counted by the fleet (S0, S2)."""

from __future__ import annotations

import asyncio
import math
from random import Random

import structlog
from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import change_stored

__all__ = ["RateValve", "RateWindow", "let_through"]

_log = structlog.get_logger(__name__)


class RateWindow(SharedRecord, frozen=True, kw_only=True):
    """How many were let through to one seat in the second that began at ``second`` (Unix time, on the store's clock).

    One record a seat: the next window takes the place of the one before it, so none outlives its successor (C-122).
    """

    handle: str
    second: int
    count: int


def let_through(standing: RateWindow | None, *, handle: str, second: int, cap: int) -> RateWindow | None:
    """The window with one more let through, or ``None`` where it is full.

    A window is never gone back to: whose estimate of the store's clock trails counts in the later one that it finds.
    """
    if standing is None:
        return RateWindow(handle=handle, second=second, count=1)
    if standing.second < second:
        return replace(standing, second=second, count=1)
    return None if standing.count >= cap else replace(standing, count=standing.count + 1)


class RateValve:
    """One valve a seat, for the whole fleet, on the store's clock: no node's own clock lets more through.

    Fails closed (C-006): what could not be counted within ``limits.RATE_WAIT_S`` is not let through, and is logged.
    """

    def __init__(self, store: RecordStore, chance: Random) -> None:
        self._store = store
        self._chance = chance

    async def admits(self, handle: str, *, cap: int) -> bool:
        """Whether one more may pass to the seat, of ``cap`` a second; it is counted then. A cap of 0 is no valve."""
        if cap <= 0:
            return True
        try:
            async with asyncio.timeout(limits.RATE_WAIT_S):
                return await self._counted(handle, cap)
        except (Unavailable, TimeoutError) as error:
            _log.warning("rate_valve_unreadable", handle=handle, error=str(error) or "no answer in time")
            return False

    async def _counted(self, handle: str, cap: int) -> bool:
        time = await self._store.time()
        second = math.floor(time.earliest.timestamp())
        window = await change_stored(
            self._store,
            RateWindow,
            f"seat.{key_token(handle)}",
            lambda standing: let_through(standing, handle=handle, second=second, cap=cap),
            pauses_s=_pauses_s(self._chance),
        )
        return window is not None


def _pauses_s(chance: Random) -> list[float]:
    longest_s = [
        min(limits.RATE_PAUSE_LONGEST_S, limits.RATE_PAUSE_FIRST_S * 2**attempt)
        for attempt in range(limits.RATE_ATTEMPTS_MAX - 1)
    ]
    return [chance.uniform(0.5, 1.0) * each_s for each_s in longest_s]
