"""How one process writes a shared counter: its pauses, its pace beside others, and what a fault of ours does to it."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import BUDGETS, Budgets, Record, Revision, Spend, Windows, windows_at
from crewlet.coordination.records.budget_pace import SharedPace
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time

SPEND = Spend(tokens=10, lane="t1", number=1)


class Overtaken(MemoryRecordStore):
    """Another's write lands before each of ours; when each was tried is noted."""

    def __init__(self, bucket: MemoryBucket) -> None:
        super().__init__(bucket)
        self.tried_at_s: list[float] = []

    async def create(self, key: str, value: bytes) -> Record:
        self.tried_at_s.append(asyncio.get_running_loop().time())
        raise Conflict(key, expected=0, current=1)


class Reading(MemoryRecordStore):
    """A store whose reads take a while, so that many wait behind the first."""

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        await asyncio.sleep(0.01)
        return await super().update(key, value, expected=expected)


def windows() -> Windows:
    return windows_at(VirtualClock().now(), ZoneInfo("UTC"))


@pytest.mark.spec("C-189")
async def test_each_pause_is_up_to_twice_the_one_before_and_at_most_32_ms() -> None:
    store = Overtaken(MemoryBucket(BUDGETS, VirtualClock()))
    budgets = Budgets(store, Random(3))

    with pytest.raises(Unavailable, match="every attempt"):
        await budgets.charge(SPEND, windows=windows)

    attempts = store.tried_at_s[:16]
    pauses_ms = [1000 * (later - earlier) for earlier, later in pairwise(attempts)]
    assert len(store.tried_at_s) == 16
    for attempt, pause_ms in enumerate(pauses_ms):
        longest_ms = min(32, 2**attempt)
        assert 0.69 * longest_ms < pause_ms < 1.01 * longest_ms
    assert 240 < sum(pauses_ms) < 360
    await budgets.close()


async def test_what_was_spent_can_be_read_without_who_spent_it() -> None:
    budgets = Budgets(MemoryRecordStore(MemoryBucket(BUDGETS, VirtualClock())), Random(3))
    assert await budgets.slots_of("org", windows()) == await budgets.spent("org", windows())

    await budgets.charge(SPEND, windows=windows)

    after = await budgets.slots_of("org", windows())
    assert (after.day.used, after.week.used, after.month.used, after.lanes) == (10, 10, 10, {})
    await budgets.close()


async def test_what_waits_behind_a_write_goes_with_the_next_one() -> None:
    bucket = MemoryBucket(BUDGETS, VirtualClock())
    budgets = Budgets(Reading(bucket), Random(3))
    await budgets.charge(SPEND, windows=windows)
    before = bucket.newest()

    spends = [Spend(tokens=1, lane=f"lane{each}", number=1) for each in range(100)]
    await asyncio.gather(*(budgets.charge(each, windows=windows) for each in spends))

    assert bucket.newest() - before <= 3
    assert (await budgets.spent("org", windows())).day.used == 110
    await budgets.close()


async def test_a_line_that_breaks_is_heard_of_and_goes_on_with_the_next() -> None:
    budgets = Budgets(MemoryRecordStore(MemoryBucket(BUDGETS, VirtualClock())), Random(3))

    def broken() -> Windows:
        raise RuntimeError("no calendar")

    with capture_logs() as logs:
        with pytest.raises(Unavailable, match="no calendar"):
            await budgets.charge(SPEND, windows=broken)
        verdict = await budgets.charge(SPEND, windows=windows)

    assert verdict.admitted
    assert "task_failed" in {line["event"] for line in logs}
    await budgets.close()


async def test_a_full_line_takes_no_more_and_says_what_is_not_counted() -> None:
    bucket = MemoryBucket(BUDGETS, VirtualClock())
    store = MemoryRecordStore(bucket)
    store.link.silent = True
    budgets = Budgets(store, Random(3))
    async with asyncio.TaskGroup() as group:
        for number in range(limits.BUDGET_LINE_MAX):
            spend = Spend(tokens=1, lane=f"lane{number}", number=1)
            group.create_task(refused(budgets, spend))
        await asyncio.sleep(0)

        with capture_logs() as logs, pytest.raises(Unavailable, match="wait already"):
            await budgets.charge(SPEND, windows=windows)

    assert [line["tokens"] for line in logs if line["event"] == "coord_kv_budget_spend_uncounted"] == [10]
    await budgets.close()


async def refused(budgets: Budgets, spend: Spend) -> None:
    with pytest.raises(Unavailable):
        await budgets.charge(spend, windows=windows)


async def test_a_caller_waits_no_longer_than_it_was_told() -> None:
    bucket = MemoryBucket(BUDGETS, VirtualClock())
    store = MemoryRecordStore(bucket)
    store.link.silent = True
    budgets, began_s = Budgets(store, Random(3)), asyncio.get_running_loop().time()

    with pytest.raises(Unavailable):
        await budgets.charge(SPEND, windows=windows)

    assert asyncio.get_running_loop().time() - began_s <= limits.BUDGET_CHARGE_WAIT_S
    await budgets.close()


def test_a_record_of_ones_own_is_written_without_a_pause() -> None:
    pace = SharedPace(Random(3))

    pace.wrote(100.0, attempts=1, round_s=0.5)

    assert not pace.is_shared(100.0)
    assert pace.pause_s(100.0) == 0.0


def test_who_lost_attempts_leaves_the_record_to_others_for_longer_and_then_for_less() -> None:
    pace = SharedPace(Random(3))
    pace.overtaken(100.0)

    for _ in range(6):
        pace.wrote(100.0, attempts=3, round_s=0.001)
    longer_s = pace.pause_s(100.0)
    for _ in range(30):
        pace.wrote(100.0, attempts=1, round_s=0.001)

    assert 0.005 < longer_s < 0.02
    assert 0.0 < pace.pause_s(100.0) < 0.002
    assert pace.pause_s(100.0 + limits.BUDGET_SHARED_S) == 0.0
    assert pace.pause_s(100.1) == 0.0
