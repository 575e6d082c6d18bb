"""When the lanes of a turn that ended go: ten minutes later, with whatever is written then."""

from __future__ import annotations

import asyncio
from random import Random
from zoneinfo import ZoneInfo

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.coordination import BUDGETS, COMPANY_SCOPE, Budgets, Spend, Windows, agent_scope, windows_at
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time

ADA = "0d5a1c1e"


def windows() -> Windows:
    return windows_at(VirtualClock().now(), ZoneInfo("UTC"))


async def test_a_turns_lanes_are_there_for_ten_minutes_after_its_end_and_not_for_longer() -> None:
    budgets = Budgets(MemoryRecordStore(MemoryBucket(BUDGETS, VirtualClock())), Random(1))

    async def lanes_after(number: int) -> list[list[str]]:
        await budgets.charge(Spend(tokens=1, lane="other", number=number, agent_id=ADA), windows=windows)
        records = [await budgets.spent(scope, windows()) for scope in (COMPANY_SCOPE, agent_scope(ADA))]
        return [sorted(record.lanes) for record in records]

    for lane in ("turn", "turn/worker"):
        await budgets.charge(Spend(tokens=1, lane=lane, number=1, agent_id=ADA), windows=windows)
    budgets.forget_turn("turn", ADA)

    await asyncio.sleep(599)
    before = await lanes_after(1)
    await asyncio.sleep(2)
    behind = await lanes_after(2)

    assert before == [["other", "turn", "turn/worker"]] * 2
    assert behind == [["other"]] * 2
