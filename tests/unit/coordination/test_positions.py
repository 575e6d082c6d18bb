"""What a first write is held against, and what it takes to hold it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.coordination import POSITIONS, LogPosition, Positions, PublishedFloor, Record, may_write_first
from crewlet.coordination.records.positions import raised, write_fence
from crewlet.testing import VirtualClock

AT = datetime(2030, 1, 1, tzinfo=UTC)
FLOOR = PublishedFloor(
    domain="tracker", generation=2, floor=70, term="age_floor", published_by="node-0", published_at=AT
)


class Listed(MemoryRecordStore):
    """A store that keeps what it was asked to list."""

    def __init__(self, bucket: MemoryBucket) -> None:
        super().__init__(bucket)
        self.patterns: list[str] = []
        self.read: list[str] = []

    async def list(self, pattern: str) -> list[Record]:
        self.patterns.append(pattern)
        return await super().list(pattern)

    async def get(self, key: str) -> Record | None:
        self.read.append(key)
        return await super().get(key)


@pytest.mark.spec("C-017")
@pytest.mark.virtual_time
async def test_the_fence_lists_the_floors_and_nothing_else() -> None:
    store = Listed(MemoryBucket(POSITIONS, VirtualClock()))
    positions = Positions(store)
    await positions.publish_floor(FLOOR)
    store.read.clear()

    await positions.write_fence("tracker", LogPosition(2, 1))

    assert (store.patterns, store.read) == (["floor.>"], [])


@pytest.mark.spec("C-018")
@pytest.mark.parametrize(
    ("first", "fence"),
    [
        (LogPosition(2, 1), LogPosition(2, 70)),
        (LogPosition(2, 70), LogPosition(2, 70)),
        (LogPosition(2, 71), LogPosition(2, 71)),
        (LogPosition(3, 1), LogPosition(3, 1)),
        (LogPosition(1, 900), LogPosition(2, 70)),
    ],
)
def test_the_higher_of_the_floor_and_the_logs_beginning_counts(first: LogPosition, fence: LogPosition) -> None:
    assert write_fence(FLOOR, first) == fence


def test_without_a_floor_the_logs_beginning_counts() -> None:
    assert write_fence(None, LogPosition(2, 5)) == LogPosition(2, 5)


@pytest.mark.spec("C-018")
@pytest.mark.parametrize(
    ("checkpoint", "may"),
    [
        (LogPosition(2, 68), False),
        (LogPosition(2, 69), True),
        (LogPosition(2, 70), True),
        (LogPosition(1, 900), False),
        (LogPosition(3, 0), True),
    ],
)
def test_who_applied_all_below_the_fence_may_write_first(checkpoint: LogPosition, may: bool) -> None:
    assert may_write_first(checkpoint, LogPosition(2, 70)) is may


def test_a_floor_that_stands_still_is_published_again_with_what_holds_it() -> None:
    held = replace(FLOOR, term="min_hold", held_since=AT)

    assert raised(FLOOR, held) == held
    assert raised(FLOOR, replace(FLOOR, floor=69)) is None
    assert raised(None, FLOOR) == FLOOR
