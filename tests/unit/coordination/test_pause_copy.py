"""A copy of the pauses between its answers: how it opens its watch again, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.backends.memory.record_watch import MemoryWatch
from crewlet.base import limits
from crewlet.coordination import POSITIONS, PauseCopy, SeatPause, SeatPauses
from crewlet.testing import VirtualClock, wait_until

pytestmark = pytest.mark.virtual_time

PAUSE = SeatPause(handle="cto", by="ada", at=datetime(2030, 1, 1, tzinfo=UTC))


class Opened(MemoryRecordStore):
    """A store that keeps when it was watched."""

    def __init__(self, bucket: MemoryBucket, clock: VirtualClock) -> None:
        super().__init__(bucket)
        self.clock = clock
        self.opened_s: list[float] = []

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[MemoryWatch]:
        self.opened_s.append(self.clock.elapsed_s())
        async with super().watch(*patterns) as watch:
            yield watch


@pytest.fixture
async def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def bucket(clock: VirtualClock) -> MemoryBucket:
    return MemoryBucket(POSITIONS, clock)


async def nothing(handle: str, pause: SeatPause | None) -> None: ...


async def test_a_watch_that_cannot_be_opened_is_opened_more_and_more_seldom(
    bucket: MemoryBucket, clock: VirtualClock
) -> None:
    bucket.cut = True
    store = Opened(bucket, clock)
    copy = PauseCopy(store, clock, nothing)
    copy.start()
    await asyncio.sleep(60)
    await copy.close()

    pauses = [round(later - earlier, 6) for earlier, later in pairwise(store.opened_s)]
    assert pauses[0] == pytest.approx(limits.PAUSE_WATCH_BACKOFF_FIRST_S)
    assert pauses == sorted(pauses)
    assert max(pauses) == pytest.approx(limits.PAUSE_WATCH_BACKOFF_MAX_S)


async def test_a_watch_that_breaks_again_and_again_does_not_cost_a_listing_each_time_at_once(
    bucket: MemoryBucket, clock: VirtualClock
) -> None:
    store = Opened(bucket, clock)
    copy = PauseCopy(store, clock, nothing)
    copy.start()
    for _ in range(600):
        await asyncio.sleep(0.1)
        bucket.cut = True
        bucket.cut = False
    await copy.close()

    assert len(store.opened_s) < 30


async def test_a_watch_that_held_for_long_is_opened_again_at_once(bucket: MemoryBucket, clock: VirtualClock) -> None:
    store = Opened(bucket, clock)
    copy = PauseCopy(store, clock, nothing)
    copy.start()
    for _ in range(10):
        await asyncio.sleep(60)
        bucket.cut = True
        bucket.cut = False
    broke_s = clock.elapsed_s()
    await asyncio.sleep(1)
    await copy.close()

    assert store.opened_s[-1] - broke_s == pytest.approx(limits.PAUSE_WATCH_BACKOFF_FIRST_S)


async def test_how_long_nothing_was_followed_is_counted_from_the_break(
    bucket: MemoryBucket, clock: VirtualClock
) -> None:
    copy = PauseCopy(MemoryRecordStore(bucket), clock, nothing)
    copy.start()
    await copy.wait_known()
    followed = copy.behind_s
    await asyncio.sleep(100)
    bucket.cut = True
    await asyncio.sleep(30)
    behind_s = copy.behind_s
    await copy.close()

    assert followed == 0
    assert behind_s == pytest.approx(30)


async def test_a_listener_that_is_broken_ends_the_following_and_is_told(
    bucket: MemoryBucket, clock: VirtualClock
) -> None:
    failures: list[BaseException] = []

    async def broken(handle: str, pause: SeatPause | None) -> None:
        raise ZeroDivisionError

    copy = PauseCopy(MemoryRecordStore(bucket), clock, broken, on_failure=lambda _, error: failures.append(error))
    copy.start()
    with capture_logs() as logs:
        await SeatPauses(MemoryRecordStore(bucket)).pause(PAUSE)
        await wait_until(lambda: len(failures) == 1)
    await asyncio.sleep(30)

    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["task_failed"]
    assert copy.paused("cto") == PAUSE
    assert copy.behind_s == pytest.approx(30, abs=0.1)
    await copy.close()


async def test_a_listener_that_is_slow_keeps_nobody_from_the_newest_answer(
    bucket: MemoryBucket, clock: VirtualClock
) -> None:
    told: list[SeatPause | None] = []

    async def slow(handle: str, pause: SeatPause | None) -> None:
        await asyncio.sleep(60)
        told.append(pause)

    copy, pauses = PauseCopy(MemoryRecordStore(bucket), clock, slow), SeatPauses(MemoryRecordStore(bucket))
    copy.start()
    await pauses.pause(PAUSE)
    await asyncio.sleep(1)
    await pauses.lift("cto")
    await asyncio.sleep(1)
    meanwhile = copy.paused("cto")
    await asyncio.sleep(300)
    await copy.close()

    assert meanwhile is None
    assert told == [PAUSE, None]
