"""The budget lanes of processes that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from zoneinfo import ZoneInfo

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base.errors import Unavailable
from crewlet.base.fence import OpenFence
from crewlet.coordination import BUDGETS, COMPANY_SCOPE, Budgets, Spend, Windows, agent_scope, windows_at
from crewlet.duties import LaneSweep
from crewlet.testing import VirtualClock
from tests.unit.coordination.lease_rig import TTL_S, Process, Rig

pytestmark = pytest.mark.virtual_time

ADA = "0d5a1c1e"
DAY_S = 24 * 3600.0


class Company:
    """One set of buckets, a process that sweeps, and what was charged."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.process: Process = self.rig.process("node-1")
        self.budgets = Budgets(MemoryRecordStore(MemoryBucket(BUDGETS, self.rig.clock)), Random(1))
        self.sweep = LaneSweep(self.budgets, self.process.leases, self.rig.clock)

    async def charge(self, *lanes: str) -> None:
        for lane in lanes:
            await self.budgets.charge(Spend(tokens=1, lane=lane, number=1, agent_id=ADA), windows=windows)

    async def lanes(self) -> list[str]:
        """What both records have alike."""
        records = [await self.budgets.spent(scope, windows()) for scope in (COMPANY_SCOPE, agent_scope(ADA))]
        company, seat = (sorted(record.lanes) for record in records)
        assert company == seat
        return company


def windows() -> Windows:
    return windows_at(VirtualClock().now(), ZoneInfo("UTC"))


@pytest.fixture
async def company() -> AsyncIterator[Company]:
    company = Company()
    async with company.rig.stack:
        yield company


async def test_the_lane_of_an_incarnation_goes_a_day_after_it_was_found_gone(company: Company) -> None:
    await company.charge("node-2:aa", "a turn", "a turn/worker")

    await company.sweep.run(OpenFence())
    await asyncio.sleep(DAY_S - 1)
    await company.sweep.run(OpenFence())
    before = await company.lanes()
    await asyncio.sleep(1)
    await company.sweep.run(OpenFence())

    assert before == ["a turn", "a turn/worker", "node-2:aa"]
    assert await company.lanes() == ["a turn", "a turn/worker"]


async def test_an_incarnation_that_is_present_keeps_its_lane_and_its_day_begins_when_it_lapses(
    company: Company,
) -> None:
    owner = "node-1:aa"
    await company.process.leases.claim("node:node-1", owner=owner, ttl_s=TTL_S)
    await company.charge(owner)
    for _ in range(2):
        await company.sweep.run(OpenFence())
    await asyncio.sleep(TTL_S + 1)
    await company.sweep.run(OpenFence())

    await asyncio.sleep(DAY_S - 1)
    await company.sweep.run(OpenFence())
    before = await company.lanes()
    await asyncio.sleep(1)
    await company.sweep.run(OpenFence())

    assert before == [owner]
    assert await company.lanes() == []


async def test_one_that_came_back_is_not_held_to_its_absence(company: Company) -> None:
    await company.charge("node-2:aa")
    await company.sweep.run(OpenFence())
    await asyncio.sleep(DAY_S - 1)
    await company.process.leases.claim("node:node-2", owner="node-2:aa", ttl_s=TTL_S)
    await company.sweep.run(OpenFence())
    await asyncio.sleep(TTL_S + 1)

    await company.sweep.run(OpenFence())

    assert await company.lanes() == ["node-2:aa"]


async def test_where_nobody_says_who_is_here_nobody_is_gone(company: Company) -> None:
    await company.charge("node-2:aa")
    await company.sweep.run(OpenFence())
    await asyncio.sleep(DAY_S)
    company.rig.buckets[0].cut = True

    with pytest.raises(Unavailable):
        await company.sweep.run(OpenFence())

    assert await company.lanes() == ["node-2:aa"]
