"""The notification valve: how a window fills and turns, and what is refused within a bound."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.base.errors import Conflict
from crewlet.coordination import RATE, RateValve, RateWindow, Record
from crewlet.coordination.records.rate_valve import let_through
from crewlet.testing import VirtualClock


def window(second: int, count: int) -> RateWindow:
    return RateWindow(handle="ceo", second=second, count=count)


@pytest.mark.parametrize(
    ("standing", "second", "counted"),
    [
        (None, 7, window(7, 1)),
        (window(7, 1), 7, window(7, 2)),
        (window(7, 2), 7, None),
        (window(7, 2), 8, window(8, 1)),
        (window(7, 1), 6, window(7, 2)),
        (window(7, 2), 6, None),
    ],
)
def test_a_window_fills_turns_and_is_never_gone_back_to(
    standing: RateWindow | None, second: int, counted: RateWindow | None
) -> None:
    assert let_through(standing, handle="ceo", second=second, cap=2) == counted


@pytest.mark.spec("C-122")
def test_a_window_is_kept_for_a_few_windows() -> None:
    assert RATE.age_s is not None
    assert 2.0 <= RATE.age_s <= 10.0


@pytest.mark.virtual_time
async def test_a_store_that_never_answers_holds_a_notification_up_for_a_bounded_time() -> None:
    store = MemoryRecordStore(MemoryBucket(RATE, VirtualClock()))
    store.link.silent = True

    began_s = asyncio.get_running_loop().time()
    with capture_logs() as logs:
        passes = await RateValve(store, Random(7)).admits("ceo", cap=5)
    took_s = asyncio.get_running_loop().time() - began_s

    assert not passes
    assert took_s == pytest.approx(limits.RATE_WAIT_S)
    assert [entry["event"] for entry in logs] == ["rate_valve_unreadable"]


class Overtaken(MemoryRecordStore):
    """Somebody else always writes first."""

    async def create(self, key: str, value: bytes) -> Record:
        raise Conflict(key, expected=0)


@pytest.mark.virtual_time
async def test_a_count_that_never_gets_through_is_refused_within_a_bound() -> None:
    store = Overtaken(MemoryBucket(RATE, VirtualClock()))

    began_s = asyncio.get_running_loop().time()
    passes = await RateValve(store, Random(7)).admits("ceo", cap=5)
    took_s = asyncio.get_running_loop().time() - began_s

    assert not passes
    assert 1.0 < took_s <= limits.RATE_WAIT_S
