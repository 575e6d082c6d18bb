"""When a tenure is over: by every reading of the store's clock within its bounds, and not a moment before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crewlet.coordination import ClaimRefused, Lease, RefusalRule
from tests.unit.coordination.lease_rig import TTL_S, Process, Rig

pytestmark = pytest.mark.virtual_time

UNCERTAINTY_S = 0.01
"""How far off the rig's processes know the store's clock."""


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    async with rig.stack:
        yield rig


async def claims(process: Process, resource: str, ttl_s: float) -> Lease | ClaimRefused:
    return await process.leases.claim(resource, owner=process.owner, ttl_s=ttl_s)


@pytest.mark.spec("C-108", "S-018")
@pytest.mark.parametrize(("resource", "ttl_s"), [("worker:tick", 30.0), ("seat:ceo", TTL_S), ("node:n", TTL_S)])
async def test_what_may_be_over_is_held_still_and_what_surely_is_over_is_free(
    rig: Rig, resource: str, ttl_s: float
) -> None:
    first, second = rig.process("node-1"), rig.process("node-2")
    lease = await first.claimed(resource, ttl_s)
    await asyncio.sleep(ttl_s - UNCERTAINTY_S / 2)

    too_soon = await claims(second, resource, ttl_s)
    holder = await second.leases.holder(resource)
    held = await second.leases.held(resource.partition(":")[0])
    await asyncio.sleep(2 * UNCERTAINTY_S)
    free = await second.leases.holder(resource)
    taken = await claims(second, resource, ttl_s)

    assert too_soon == ClaimRefused(RefusalRule.HELD, first.owner)
    assert holder == lease
    assert held == [lease]
    assert free is None
    assert isinstance(taken, Lease)
    assert taken.epoch == lease.epoch + 1


@pytest.mark.spec("S-009")
async def test_a_tenure_that_may_be_over_is_renewed_and_one_that_surely_is_over_is_not(rig: Rig) -> None:
    process = rig.process()
    lease = await process.claimed("worker:tick", 30.0)
    await asyncio.sleep(30.0 - UNCERTAINTY_S / 2)

    renewed = await process.leases.renew(lease, ttl_s=30.0)
    await asyncio.sleep(30.0 + 2 * UNCERTAINTY_S)
    again = await process.leases.renew(lease, ttl_s=30.0)

    assert renewed is not None
    assert again is None
