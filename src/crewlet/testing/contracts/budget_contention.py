"""Promises about many who charge at once: what one process sends together, and what processes leave to each other."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import COMPANY_SCOPE, Ceilings
from crewlet.testing.contracts.budget_rig import BudgetProcess, BudgetRig
from crewlet.testing.contracts.contract import Contract

__all__ = ["BudgetContention"]


async def _charge_many(process: BudgetProcess, name: str, *, tasks: int, each: int) -> None:
    async def one(task: int) -> None:
        for number in range(1, each + 1):
            await process.charge(3, lane=f"{name}{task}", number=number, agent="")

    await asyncio.gather(*(one(task) for task in range(tasks)))


class BudgetContention(Contract):
    """None fails while the store is well, and the sum is exact."""

    @pytest.mark.spec("C-189", "C-190")
    async def test_thirty_two_at_once_all_count_time_after_time(self, budgets: BudgetRig) -> None:
        process = await budgets.process()

        for run in range(10):
            await _charge_many(process, f"run{run}-", tasks=32, each=1)

        assert await process.used() == (960, 960, 960)

    async def test_four_processes_count_exactly(self, budgets: BudgetRig) -> None:
        processes = [await budgets.process() for _ in range(4)]
        await budgets.records.disturb()

        await asyncio.gather(*(_charge_many(process, f"p{n}-", tasks=8, each=5) for n, process in enumerate(processes)))

        assert await processes[0].used() == (480, 480, 480)

    async def test_processes_that_take_turns_lose_nothing_of_each_other(self, budgets: BudgetRig) -> None:
        processes = [await budgets.process() for _ in range(3)]

        for number in range(1, 4):
            for lane, process in enumerate(processes):
                await process.charge(10**lane, lane=str(lane), number=number)

        assert await processes[0].used() == (333, 333, 333)

    async def test_what_comes_together_is_judged_in_its_order(self, budgets: BudgetRig) -> None:
        process, cap = await budgets.process(), Ceilings(day=10)
        let_go = process.store.hold(COMPANY_SCOPE)
        first = budgets.tasks.start("first", process.charge(1, lane="first", agent=""))
        await budgets.until(lambda: process.store.attempts == 1, what="a write under way")
        behind = [
            budgets.tasks.start(lane, process.charge(4, lane=lane, agent="", company=cap)) for lane in ("a", "b", "c")
        ]
        await budgets.records.advance(0.01)

        let_go()
        await first
        verdicts = [await each for each in behind]

        assert [each.admitted for each in verdicts] == [True, True, False]
        assert verdicts[2].refusals[0].used == 13
        assert budgets.written == ["org", "org"]

    @pytest.mark.spec("C-189")
    async def test_a_write_that_is_overtaken_every_time_fails_closed_after_sixteen_attempts(
        self, budgets: BudgetRig
    ) -> None:
        process = await budgets.process()
        process.store.overtake(COMPANY_SCOPE)
        began_s = budgets.records.clock.elapsed_s()

        with pytest.raises(Unavailable):
            await process.charge(10, company=Ceilings(day=1))

        took_s, attempts = budgets.records.clock.elapsed_s() - began_s, process.store.attempts
        assert attempts == 16
        assert took_s > 0.2
