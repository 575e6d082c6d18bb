"""A node whose clock runs a little slower than the store's still stops before a peer can begin."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.base.errors import Fenced
from crewlet.coordination import KvLeases, Lease
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.seats import Host, HostConfig, PlacedSeat, ReleaseMode
from crewlet.testing import SeededIds, VirtualClock
from crewlet.testing.fleet_simulation.clocks import NodeClock

pytestmark = pytest.mark.virtual_time


class _Hooks:
    """Hooks of a node with nothing to establish; how often the host looked at its seats is counted."""

    def __init__(self) -> None:
        self.unproven = 0

    async def on_acquire(self, handle: str, lease: Lease) -> None:
        pass

    def on_established(self, handle: str) -> None:
        pass

    async def on_release(self, handle: str, mode: ReleaseMode) -> None:
        pass

    async def on_unproven(self, handle: str) -> None:
        self.unproven += 1

    async def on_proven(self, handle: str) -> None:
        pass


@pytest.mark.parametrize("drift", [limits.STORE_CLOCK_DRIFT, 0.0, -limits.STORE_CLOCK_DRIFT])
async def test_the_fence_is_closed_by_the_time_the_lease_has_lapsed_on_the_stores_clock(drift: float) -> None:
    store_clock, hooks = VirtualClock(), _Hooks()
    stores = [MemoryRecordStore(MemoryBucket(slot, store_clock)) for slot in (LEASES, DUTIES, EPOCHS)]
    clock = NodeClock(store_clock, skew_s=0.0, rate=1.0 - drift)
    leases = KvLeases(leases=stores[0], duties=stores[1], epochs=stores[2], clock=clock, ids=SeededIds(1))
    host = Host(leases=leases, hooks=hooks, clock=clock, config=HostConfig(owner="a:1", node_id="a", ttl_s=45.0))
    await host.start([PlacedSeat("ceo")])
    fence = host.fence("ceo", host.epoch_of("ceo") or 0)
    await asyncio.sleep(100.0)
    lease = await leases.holder("seat:ceo")
    assert lease is not None

    for store in stores:
        store.link.cut = True
    fence.check()
    looks = hooks.unproven
    await asyncio.sleep((lease.expires_at - store_clock.now()).total_seconds())

    with pytest.raises(Fenced):
        fence.check()
    # A look is due when the lease ends, not a storm of them while the last of it passes.
    assert hooks.unproven - looks < 10
    for store in stores:
        store.link.cut = False
    await host.release_all()
    await leases.close()
