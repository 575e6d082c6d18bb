"""Leases within one process: exclusive, timed, and fenced by an epoch that never repeats."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from crewlet.backends.memory.leases import MemoryLeases
from crewlet.coordination import ClaimRefused, Lease, RefusalRule, TtlTooLong, seat_resource
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time

SEAT = seat_resource("ceo")
HELD = ClaimRefused(RefusalRule.HELD, "node-0:a")


@pytest.fixture
async def leases() -> MemoryLeases:
    return MemoryLeases(VirtualClock())


async def claimed(leases: MemoryLeases, resource: str = SEAT, owner: str = "node-0:a", ttl_s: float = 45.0) -> Lease:
    lease = await leases.claim(resource, owner=owner, ttl_s=ttl_s)
    assert isinstance(lease, Lease)
    return lease


async def test_a_claim_says_who_holds_what_until_when(leases: MemoryLeases) -> None:
    lease = await leases.claim(SEAT, owner="node-0:a", ttl_s=45.0, preferred="node-0")

    assert isinstance(lease, Lease)
    assert (lease.resource, lease.owner, lease.preferred, lease.epoch) == (SEAT, "node-0:a", "node-0", 1)
    assert lease.expires_at - lease.acquired_at == timedelta(seconds=45)


@pytest.mark.parametrize("owner", ["node-0:a", "node-1:b"])
async def test_a_held_resource_is_refused_to_everybody(leases: MemoryLeases, owner: str) -> None:
    await claimed(leases)

    assert await leases.claim(SEAT, owner=owner, ttl_s=45.0) == HELD


async def test_a_lapsed_tenure_is_claimable_under_the_next_epoch(leases: MemoryLeases) -> None:
    first = await claimed(leases)
    await asyncio.sleep(45.0)

    second = await claimed(leases, owner="node-1:b")

    assert second.epoch == first.epoch + 1
    assert second.after_lapse


async def test_a_released_resource_is_claimable_at_once_and_not_after_a_lapse(leases: MemoryLeases) -> None:
    first = await claimed(leases)
    await leases.release(first)

    second = await claimed(leases)

    assert second.epoch == first.epoch + 1
    assert not second.after_lapse


async def test_the_first_tenure_of_a_process_is_after_a_lapse(leases: MemoryLeases) -> None:
    assert (await claimed(leases)).after_lapse


async def test_a_tenure_that_lapsed_after_a_release_is_a_lapse(leases: MemoryLeases) -> None:
    await leases.release(await claimed(leases))
    await claimed(leases)
    await asyncio.sleep(45.0)

    assert (await claimed(leases)).after_lapse


async def test_a_renewal_extends_the_same_tenure(leases: MemoryLeases) -> None:
    first = await claimed(leases)
    await asyncio.sleep(30.0)

    renewed = await leases.renew(first, ttl_s=45.0)
    await asyncio.sleep(30.0)

    assert renewed is not None
    assert (renewed.epoch, renewed.acquired_at) == (first.epoch, first.acquired_at)
    assert renewed.expires_at == first.expires_at + timedelta(seconds=30)
    assert await leases.claim(SEAT, owner="node-1:b", ttl_s=45.0) == HELD


async def test_a_tenure_that_is_over_is_not_renewed(leases: MemoryLeases) -> None:
    lapsed = await claimed(leases)
    await asyncio.sleep(45.0)
    after_lapse = await leases.renew(lapsed, ttl_s=45.0)
    released = await claimed(leases)
    await leases.release(released)

    assert after_lapse is None
    assert await leases.renew(released, ttl_s=45.0) is None


async def test_an_old_tenure_neither_renews_nor_releases_the_next(leases: MemoryLeases) -> None:
    old = await claimed(leases)
    await leases.release(old)
    new = await claimed(leases)

    await leases.release(old)

    assert await leases.renew(old, ttl_s=45.0) is None
    assert await leases.renew(new, ttl_s=45.0) is not None


async def test_what_is_held_is_listed_by_kind(leases: MemoryLeases) -> None:
    ceo = await claimed(leases)
    await leases.release(await claimed(leases, "seat:cto"))
    await claimed(leases, "seat:coo", ttl_s=1.0)
    await claimed(leases, "node:node-0")
    await asyncio.sleep(1.0)

    assert await leases.held("seat") == [ceo]


async def test_epochs_start_where_they_are_told_to() -> None:
    leases = MemoryLeases(VirtualClock(), first_epoch=7)

    assert (await claimed(leases)).epoch == 7


@pytest.mark.parametrize("resource", ["", "seat", "seat:", ":ceo"])
async def test_a_resource_without_a_kind_or_a_member_is_refused(leases: MemoryLeases, resource: str) -> None:
    with pytest.raises(ValueError, match="is not a resource"):
        await leases.claim(resource, owner="node-0:a", ttl_s=45.0)


@pytest.mark.parametrize(("resource", "ttl_s"), [(SEAT, 45.1), ("node:node-0", 45.1), ("worker:learning", 10_800.1)])
async def test_what_a_fleet_would_refuse_for_its_length_is_refused(
    leases: MemoryLeases, resource: str, ttl_s: float
) -> None:
    with pytest.raises(TtlTooLong, match=r"above the ceiling of (45|10800) s"):
        await leases.claim(resource, owner="node-0:a", ttl_s=ttl_s)


@pytest.mark.parametrize("kind", ["", "seat:"])
async def test_a_kind_that_names_none_is_refused(leases: MemoryLeases, kind: str) -> None:
    with pytest.raises(ValueError, match="is not a kind"):
        await leases.held(kind)


async def test_a_tenure_that_ran_out_is_renewed_where_nobody_else_could_have_taken_it() -> None:
    """The machine slept: a node without a peer keeps its seats, and the turns that run on them."""
    leases = MemoryLeases(VirtualClock(), alone=True)
    lease = await claimed(leases)
    await asyncio.sleep(3600.0)

    renewed = await leases.renew(lease, ttl_s=45.0)

    assert renewed is not None
    assert renewed.epoch == lease.epoch
    assert await leases.claim(SEAT, owner="node-0:a", ttl_s=45.0) == HELD


async def test_a_tenure_that_ran_out_and_was_taken_is_not_renewed_even_alone() -> None:
    leases = MemoryLeases(VirtualClock(), alone=True)
    lease = await claimed(leases)
    await asyncio.sleep(45.0)
    await claimed(leases)

    assert await leases.renew(lease, ttl_s=45.0) is None
