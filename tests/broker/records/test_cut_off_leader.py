"""A leader that its peers have lost answers for a while from its own copy; nothing that is written through it lands."""

from __future__ import annotations

import contextlib

import pytest

from crewlet.backends.nats import Connection, JetStream, open_bucket
from crewlet.base.clock import SystemClock
from crewlet.base.errors import Unavailable
from crewlet.base.ids import RandomIds
from crewlet.coordination import KvLeases, Lease, RecordStore, Slot
from crewlet.testing.clusters import Cluster
from crewlet.testing.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(150)]

IDS, CLOCK = RandomIds(), SystemClock()
SLOT = Slot("led", 600.0, "a slot of the tests")


async def opened(api: JetStream) -> RecordStore:
    return (await open_bucket(api, SLOT, storage="file", ids=IDS, replicas=3)).store


def leases_on(store: RecordStore) -> KvLeases:
    """One bucket for all three, so that one leader leads them all."""
    return KvLeases(leases=store, duties=store, epochs=store, clock=CLOCK, ids=IDS)


@pytest.mark.spec("C-025")
async def test_nothing_lands_that_is_written_through_a_leader_without_its_peers(members: Cluster) -> None:
    eye = await members.connect("eye")
    await opened(JetStream(eye))
    leader = int((await members.leader(JetStream(eye), "KV_crewlet_led")).removeprefix("member"))
    peers = [member for member in range(members.size) if member != leader]
    wire = await members.connect("at the leader", member=leader)
    cut_off = await opened(JetStream(wire, timeout_s=1.0))
    before = await cut_off.create("seat.a", b"before")
    leases = leases_on(cut_off)

    # Ended, not stopped where they stand: what lies in a stopped member's sockets would reach it later.
    for member in peers:
        await members.kill(member)
    try:
        assert await cut_off.get("seat.a") == before
        with pytest.raises(Unavailable):
            await cut_off.update("seat.a", b"after", expected=before.revision)
        with pytest.raises(Unavailable):
            await leases.claim("worker:tick", owner="node-1:aa", ttl_s=30.0)
        await members.kill(leader)
    finally:
        for member in peers:
            members.start(member)

    store = await _led_again(eye)
    members.start(leader)
    await members.wait_ready()
    assert await store.get("seat.a") == before
    claimed = await leases_on(store).claim("worker:tick", owner="node-2:bb", ttl_s=30.0)
    assert isinstance(claimed, Lease)
    for each in (eye, wire):
        await each.close()
    await leases.close()


async def _led_again(wire: Connection) -> RecordStore:
    """The bucket, once the members that are left have a leader for it."""
    found: list[RecordStore] = []

    async def is_led() -> bool:
        with contextlib.suppress(Unavailable):
            store = await opened(JetStream(wire, timeout_s=2.0))
            await store.list("seat.>")
            found.append(store)
        return bool(found)

    await wait_until(is_led, what="another leader", timeout_s=60)
    return found[0]
