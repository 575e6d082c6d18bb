"""Leases over the record store: claims that take too long, counters that went back, and how a process ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from structlog.testing import capture_logs

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import ClaimRefused, RefusalRule
from crewlet.testing import wait_until
from crewlet.testing.contracts.lease_steps import Steps
from tests.unit.coordination.lease_rig import TTL_S, Rig

pytestmark = pytest.mark.virtual_time

SEAT = "seat:ada"
WRITES = [("leases", 1), ("epochs", 1), ("leases", 2)]


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    async with rig.stack:
        yield rig


@pytest.mark.parametrize("write", WRITES)
async def test_a_claim_that_took_as_long_as_its_own_ttl_fails_and_is_given_back(
    rig: Rig, write: tuple[str, int]
) -> None:
    """The machine slept in the middle of it: what it would hand out is dead already."""

    def before_write(name: str, number: int) -> None:
        if (name, number) == write:
            rig.clock.slept_s += TTL_S

    sleeper, other = rig.process(steps=Steps(before_write=before_write)), rig.process("node-2")
    await other.leases.release(await other.claimed(SEAT))

    with pytest.raises(Unavailable, match=r"the claim took 45\.0 s of its 45 s"):
        await sleeper.claimed(SEAT)

    assert not (await other.claimed(SEAT)).after_lapse


async def test_a_claim_that_took_less_is_granted(rig: Rig) -> None:
    def before_write(_name: str, _number: int) -> None:
        rig.clock.slept_s += (TTL_S - 1) / 3

    await rig.process(steps=Steps(before_write=before_write)).claimed(SEAT)


@pytest.mark.spec("S-008")
async def test_a_counter_that_went_back_goes_on_above_what_was_seen_and_says_so(rig: Rig) -> None:
    process = rig.process()
    epochs = [(await process.claimed(SEAT)).epoch]
    await asyncio.sleep(TTL_S)
    epochs.append((await process.claimed(SEAT)).epoch)
    await asyncio.sleep(TTL_S)
    counter = await process.stores[2].get("seat.ada")
    assert counter is not None
    await process.stores[2].delete("seat.ada", expected=counter.revision)

    with capture_logs() as logs:
        lease = await process.claimed(SEAT)

    assert (lease.epoch, lease.after_lapse) == (epochs[-1] + 1, True)
    assert [log["event"] for log in logs if log["log_level"] == "error"] == ["epoch_counter_went_back"]


@pytest.mark.parametrize(
    "said",
    [
        b"{}",
        b'{"resource": "worker:tick", "owner": "n:1", "ttl_s": 1e300}',
        b'{"resource": "worker:tick", "owner": "n:1", "ttl_s": -1}',
    ],
)
async def test_who_holds_a_record_that_cannot_be_read_is_not_known(rig: Rig, said: bytes) -> None:
    process = rig.process()
    await process.stores[1].create("worker.tick", said)

    for call in (
        process.claimed("worker:tick"),
        process.leases.holder("worker:tick"),
        process.leases.held("worker"),
    ):
        with pytest.raises(Unavailable, match="cannot be read"):
            await call


async def test_a_time_that_is_no_number_is_refused_before_anything_is_written(rig: Rig) -> None:
    process = rig.process()
    lease = await process.claimed("worker:other")
    before = await process.stores[1].last_revision()

    with pytest.raises(ValueError, match="nan"):
        await process.leases.claim("worker:tick", owner=process.owner, ttl_s=float("nan"))
    with pytest.raises(ValueError, match="nan"):
        await process.leases.renew(lease, ttl_s=float("nan"))

    assert await process.stores[1].last_revision() == before


async def test_an_older_builds_record_without_its_times_is_read(rig: Rig) -> None:
    process = rig.process()
    said = {"resource": "node:old", "owner": "old:1", "epoch": 3, "ttl_s": 45.0}
    record = await process.stores[0].create("node.old", msgspec.json.encode(said))

    lease = await process.leases.holder("node:old")

    assert lease is not None
    assert (lease.owner, lease.epoch, lease.protocol, lease.acquired_at) == ("old:1", 3, 0, record.written_at)


@pytest.mark.spec("S-011")
async def test_a_caller_that_gives_up_twice_does_not_keep_the_seat_dark(rig: Rig) -> None:
    steps = Steps(stop_at=6)
    impatient, other = rig.process(steps=steps), rig.process("node-2")
    claiming = asyncio.ensure_future(impatient.claimed(SEAT))
    await wait_until(lambda: steps.is_stopped)

    claiming.cancel()
    await asyncio.sleep(0)
    claiming.cancel()
    await asyncio.wait({claiming})
    await asyncio.sleep(0.1)

    assert claiming.cancelled()
    await other.claimed(SEAT)


async def test_a_give_back_that_is_not_answered_holds_nobody_up_for_longer_than_its_bound(rig: Rig) -> None:
    steps = Steps(stop_at=6)
    process = rig.process(steps=steps)
    claiming = asyncio.ensure_future(process.claimed(SEAT))
    await wait_until(lambda: steps.is_stopped)
    for store in process.stores:
        store.link.silent = True
    began_s = rig.clock.elapsed_s()

    claiming.cancel()
    await asyncio.wait({claiming})

    assert rig.clock.elapsed_s() - began_s <= limits.LEASE_GIVE_BACK_S + 0.1
    assert claiming.cancelled()


async def test_a_release_reads_no_counter_that_is_not_its_own(rig: Rig) -> None:
    """A zombie's counter moved on: the successor's tenure is never said to have ended."""
    process, other = rig.process(), rig.process("node-2")
    lease = await process.claimed("worker:tick", ttl_s=30.0)
    await asyncio.sleep(31.0)
    await other.claimed("worker:tick", ttl_s=30.0)
    await process.leases.release(lease)
    await asyncio.sleep(31.0)

    assert (await process.claimed("worker:tick", ttl_s=30.0)).after_lapse


@pytest.mark.spec("S-017")
@pytest.mark.parametrize("acquired_at", ["2000-01-01T00:00:00Z", "2099-01-01T00:00:00Z"])
async def test_when_a_tenure_began_decides_nothing(rig: Rig, acquired_at: str) -> None:
    process, other = rig.process(), rig.process("node-2")
    lease = await process.claimed(SEAT)
    record = await process.stores[0].get("seat.ada")
    assert record is not None
    said = msgspec.json.decode(record.value, type=dict[str, object]) | {"acquired_at": acquired_at}
    await process.stores[0].update("seat.ada", msgspec.json.encode(said), expected=record.revision)

    refused = await other.leases.claim(SEAT, owner=other.owner, ttl_s=TTL_S)
    renewed = await process.leases.renew(lease, ttl_s=TTL_S)
    await asyncio.sleep(TTL_S + 1)

    assert refused == ClaimRefused(RefusalRule.HELD, process.owner)
    assert renewed is not None
    assert await process.leases.renew(renewed, ttl_s=TTL_S) is None
    await other.claimed(SEAT)


async def test_closed_leases_leave_no_task_behind(rig: Rig) -> None:
    before = asyncio.all_tasks()
    process = rig.process()
    await process.claimed(SEAT)

    await process.leases.close()

    assert asyncio.all_tasks() == before


async def test_a_renewal_writes_over_what_its_process_wrote_last_without_reading_it(rig: Rig) -> None:
    process = rig.process()
    lease = await process.leases.renew(await process.claimed(SEAT), ttl_s=TTL_S)
    assert lease is not None
    process.asked.clear()

    again = await process.leases.renew(lease, ttl_s=TTL_S)

    assert again is not None
    assert process.asked == {"leases.time": 1, "leases.update": 1}


async def test_a_renewal_over_what_another_wrote_meanwhile_keeps_what_stands(rig: Rig) -> None:
    """Two of one process's clients, as one that was renewed behind this one's back."""
    process, behind = rig.process(), rig.process()
    lease = await process.leases.renew(await process.claimed(SEAT), ttl_s=TTL_S)
    assert lease is not None
    await behind.leases.renew(lease, ttl_s=TTL_S, data={"told": "meanwhile"})

    again = await process.leases.renew(lease, ttl_s=TTL_S)

    assert again is not None
    assert (again.epoch, again.data) == (lease.epoch, {"told": "meanwhile"})


async def test_a_tenure_that_lapsed_after_its_last_renewal_is_not_renewed(rig: Rig) -> None:
    process, other = rig.process(), rig.process("node-2")
    lease = await process.leases.renew(await process.claimed("worker:maintenance", ttl_s=1.0), ttl_s=1.0)
    assert lease is not None

    await asyncio.sleep(1.5)
    late = await process.leases.renew(lease, ttl_s=1.0)
    taken = await other.claimed("worker:maintenance", ttl_s=1.0)

    assert (late, taken.epoch) == (None, lease.epoch + 1)
