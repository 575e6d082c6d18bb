"""What removals cost later listings: those of the last three hours and a quarter, however many there ever were."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.coordination import CHANNELS, SLOTS
from crewlet.duties import maintenance, marker_job
from tests.unit.duties.rig import Fleet

pytestmark = pytest.mark.virtual_time

KEPT = timedelta(hours=3, minutes=15)
A_DAY_OF_REMOVALS = 24 * 60


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    fleet = Fleet()
    yield fleet
    await fleet.close()


@pytest.mark.spec("C-155")
async def test_no_marker_is_met_that_is_older_than_the_retention_and_a_tick(fleet: Fleet) -> None:
    buckets = {slot.name: MemoryBucket(slot, fleet.clock) for slot in SLOTS}
    stores = {name: MemoryRecordStore(bucket) for name, bucket in buckets.items()}
    fleet.node("a").runner.start([maintenance([marker_job({**stores}, fleet.clock)])])
    channels, bucket = stores[CHANNELS.name], buckets[CHANNELS.name]
    too_old: list[int] = []
    met: list[int] = []

    for number in range(A_DAY_OF_REMOVALS):
        record = await channels.create(f"channel.c{number}", b"{}")
        await channels.delete(record.key, expected=record.revision)
        await asyncio.sleep(60)
        now = fleet.clock.now()
        too_old.append(len(bucket.markers(now - KEPT - timedelta(seconds=1))))
        met.append(len(bucket.markers(now)))

    assert set(too_old) == {0}
    assert max(met) <= KEPT / timedelta(minutes=1) + 1
    assert met[-1] >= limits.MARKER_RETENTION_S / 60
