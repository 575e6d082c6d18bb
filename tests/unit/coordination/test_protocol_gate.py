"""The gate's view: level with the bucket before it judges, kept only while it judges, and cheap however large."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.backends.memory.record_link import MemoryLink
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import LEASE_PROTOCOL, ClaimRefused, RefusalRule
from crewlet.coordination.protocol_gate import ProtocolGate
from crewlet.coordination.slots import LEASES
from tests.unit.coordination.lease_rig import TTL_S, Process, Rig

pytestmark = pytest.mark.virtual_time

SEAT = "seat:ada"
OLDER = LEASE_PROTOCOL - 1


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    async with rig.stack:
        yield rig


def views(process: Process) -> int:
    """How often the process opened a view."""
    return process.asked["leases.watch"]


@pytest.mark.spec("S-201")
async def test_a_view_is_kept_for_a_minute_after_the_last_claim_that_it_judged(rig: Rig) -> None:
    process = rig.process()
    await process.claimed("seat:first")
    await asyncio.sleep(limits.GATE_VIEW_IDLE_S - 1)
    await process.claimed("seat:second")
    await asyncio.sleep(limits.GATE_VIEW_IDLE_S - 1)
    await process.claimed("seat:third")
    awake = views(process)
    await asyncio.sleep(limits.GATE_VIEW_IDLE_S + 1)

    await process.claimed("seat:fourth")

    assert (awake, views(process)) == (1, 2)


@pytest.mark.spec("S-202", "S-201")
async def test_a_claim_that_judges_no_gate_opens_no_view(rig: Rig) -> None:
    process, peer = rig.process(), rig.process("node-2")
    await peer.claimed(SEAT)

    refused = await process.leases.claim(SEAT, owner=process.owner, ttl_s=TTL_S)
    await process.claimed("node:node-1")
    await process.claimed("worker:tick")

    assert refused == ClaimRefused(RefusalRule.HELD, peer.owner)
    assert (views(process), process.asked["leases.last_revision"]) == (0, 0)


@pytest.mark.slow
@pytest.mark.spec("S-199")
async def test_a_claim_asks_as_much_beside_ten_leases_as_beside_thousands(rig: Rig) -> None:
    process, peer = rig.process(), rig.process("node-2")
    asked: list[Counter[str]] = []
    held = 0
    for size in (10, 2000):
        while held < size:
            await peer.claimed(f"seat:held-{held}")
            held += 1
        await process.claimed(f"seat:warm-{size}")
        before = Counter(process.asked)
        await process.claimed(f"seat:measured-{size}")
        asked.append(process.asked - before)

    assert asked[0] == asked[1]
    assert asked[0]["leases.list"] == asked[0]["leases.watch"] == 0


@pytest.mark.spec("S-198")
async def test_a_view_that_is_behind_is_waited_for(rig: Rig) -> None:
    process, old = rig.process(), rig.process("old", protocol=OLDER)
    process.stores[0].link.watch_delay_s = 0.3
    await process.claimed("seat:warm")
    await old.claimed("node:old")

    refused = await process.leases.claim(SEAT, owner=process.owner, ttl_s=TTL_S)

    assert refused == ClaimRefused(RefusalRule.PROTOCOL, old.owner, OLDER)


async def test_a_view_that_is_behind_a_busy_bucket_is_level_once_it_has_what_was_last_when_asked(rig: Rig) -> None:
    process, peer = rig.process(), rig.process("node-2")
    process.stores[0].link.watch_delay_s = 1.0
    writing = asyncio.ensure_future(busy(peer))

    lease = await process.claimed(SEAT)

    assert lease.owner == process.owner
    writing.cancel()


async def busy(peer: Process) -> None:
    """Write again and again."""
    lease = await peer.claimed("node:node-2")
    while True:
        await asyncio.sleep(0.1)
        await peer.leases.renew(lease, ttl_s=TTL_S)


async def test_a_view_that_never_comes_level_makes_the_answer_unknown_in_time(rig: Rig) -> None:
    process, peer = rig.process(), rig.process("node-2")
    process.stores[0].link.watch_delay_s = 1000.0
    await process.leases.claim("node:node-1", owner=process.owner, ttl_s=TTL_S)
    claiming = asyncio.ensure_future(process.claimed(SEAT))
    await asyncio.sleep(0.5)
    await peer.claimed("node:node-2")
    began_s = rig.clock.elapsed_s()

    with pytest.raises(Unavailable):
        await claiming

    assert rig.clock.elapsed_s() - began_s <= 2 * limits.GATE_VIEW_WAIT_S + limits.LEASE_GIVE_BACK_S
    assert await peer.leases.holder(SEAT) is None


@pytest.mark.spec("S-198")
async def test_a_last_write_that_aged_out_unseen_is_not_waited_for(rig: Rig) -> None:
    bucket = MemoryBucket(replace(LEASES, age_s=2.0), rig.clock)
    store = MemoryRecordStore(bucket, MemoryLink(watch_delay_s=4.0))
    gate = ProtocolGate(store, protocol=LEASE_PROTOCOL)
    rig.stack.push_async_callback(gate.close)
    await gate.lowest()
    await store.create("node.n", b'{"protocol": 4}')
    began_s = rig.clock.elapsed_s()

    lowest = await gate.lowest()

    assert lowest is None
    assert rig.clock.elapsed_s() - began_s < 2.0 + 2 * limits.GATE_VIEW_REREAD_S


async def test_a_view_that_broke_is_opened_again(rig: Rig) -> None:
    process, old = rig.process(), rig.process("old", protocol=OLDER)
    await process.claimed("seat:warm")
    process.stores[0].link.cut = True
    presence = await old.claimed("node:old")
    process.stores[0].link.cut = False

    refused = await process.leases.claim(SEAT, owner=process.owner, ttl_s=TTL_S)
    await old.leases.release(presence)

    assert refused == ClaimRefused(RefusalRule.PROTOCOL, old.owner, OLDER)
    await process.claimed(SEAT)


async def test_claims_at_once_share_one_view(rig: Rig) -> None:
    process = rig.process()

    await asyncio.gather(*(process.claimed(f"seat:s{number}") for number in range(20)))

    assert views(process) == 1


async def test_a_view_that_could_not_be_opened_makes_the_answer_unknown(rig: Rig) -> None:
    process = rig.process()
    await process.claimed("node:node-1")
    rig.buckets[0].cut = True

    with pytest.raises(Unavailable):
        await process.claimed(SEAT)

    rig.buckets[0].cut = False
    await process.claimed(SEAT)


@pytest.mark.spec("S-193")
async def test_an_older_lease_that_comes_between_the_two_judgements_stops_the_claim_and_leaves_nothing(
    rig: Rig,
) -> None:
    process, old = rig.process(), rig.process("old", protocol=OLDER)
    create = process.stores[0].create

    async def create_late(key: str, value: bytes) -> object:
        await old.claimed("node:old")
        return await create(key, value)

    process.stores[0].create = create_late  # pyright: ignore[reportAttributeAccessIssue]

    refused = await process.leases.claim(SEAT, owner=process.owner, ttl_s=TTL_S)

    assert refused == ClaimRefused(RefusalRule.PROTOCOL, old.owner, OLDER)
    assert await old.leases.holder(SEAT) is None


@pytest.mark.parametrize("said", [b'{"protocol": 1, "ttl_s": 1e300}', b'{"protocol": 1, "ttl_s": -5}', b'{"a":' * 5000])
async def test_a_lease_that_cannot_be_read_makes_the_answer_unknown_and_leaves_the_view_standing(
    rig: Rig, said: bytes
) -> None:
    process = rig.process()
    await process.claimed("seat:first")
    await process.stores[0].create("seat.odd", said)

    for _ in range(2):
        with pytest.raises(Unavailable, match="cannot be read"):
            await process.claimed(SEAT)

    assert views(process) == 1


async def test_a_claim_in_the_very_moment_in_which_the_view_falls_asleep_is_judged(rig: Rig) -> None:
    process = rig.process()
    gate = ProtocolGate(process.stores[0], protocol=LEASE_PROTOCOL)
    loop = asyncio.get_running_loop()
    asked: list[asyncio.Task[object]] = []

    def ask() -> None:
        asked.append(asyncio.ensure_future(gate.lowest()))

    # Of two timers of one moment, the one that was set first runs first; what both of them wake runs behind them.
    asleep_at = loop.time() + limits.GATE_VIEW_IDLE_S
    loop.call_at(asleep_at, ask)
    await gate.lowest()

    await asyncio.sleep(limits.GATE_VIEW_IDLE_S + 1)

    assert [await each for each in asked] == [None]
    await gate.close()
