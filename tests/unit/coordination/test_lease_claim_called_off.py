"""A claim that is called off at any of its steps leaves none of its halves behind."""

from __future__ import annotations

import asyncio
import gc
import warnings
from contextlib import suppress

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base.errors import Unavailable
from crewlet.coordination import KvLeases
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.testing import SeededIds, VirtualClock
from crewlet.testing.simulated import SimulatedProcess, in_processes

_STEPS = 60


@pytest.mark.slow
@pytest.mark.virtual_time
async def test_a_claim_that_is_called_off_leaves_nothing_unawaited() -> None:
    in_processes(asyncio.get_running_loop())

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for steps in range(_STEPS):
            await _called_off_after(steps)
        gc.collect()

    assert [str(each.message) for each in heard if "never awaited" in str(each.message)] == []


async def _called_off_after(steps: int) -> None:
    """Its process stands still first, so that what it has begun is ended before its first step."""
    clock, process = VirtualClock(), SimulatedProcess("a:1")
    stores = [MemoryRecordStore(MemoryBucket(slot, clock)) for slot in (LEASES, DUTIES, EPOCHS)]
    leases = KvLeases(leases=stores[0], duties=stores[1], epochs=stores[2], clock=clock, ids=SeededIds())
    claim = process.run(leases.claim("seat:ceo", owner="a:1", ttl_s=30.0))
    for _ in range(steps):
        await asyncio.sleep(0)
    process.stop()
    await asyncio.sleep(0)
    for store in stores:
        store.link.cut = True
    await process.end()
    with suppress(asyncio.CancelledError, Unavailable):
        await claim
    await leases.close()
