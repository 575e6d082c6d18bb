"""Promises about the mark that a refusal leaves beside the counter, with a charge and without one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from crewlet.coordination import COMPANY_SCOPE, Ceilings
from crewlet.testing.contracts.budget_rig import NOON, SEAT, BudgetRig
from crewlet.testing.contracts.contract import Contract

__all__ = ["BudgetMarks", "BudgetRefusals"]


class BudgetRefusals(Contract):
    """A refused charge marks what refused it."""

    @pytest.mark.spec("C-069", "C-072")
    async def test_every_process_reads_when_a_call_was_last_turned_away(self, budgets: BudgetRig) -> None:
        here, there = await budgets.process(), await budgets.process()

        await here.charge(10, company=Ceilings(day=5, week=100))

        record = await there.spent()
        assert (record.day.refused_at, record.week.refused_at, record.month.refused_at) == (NOON, None, None)
        assert (await there.spent(SEAT)).day.refused_at is None

    @pytest.mark.spec("C-070")
    async def test_the_next_charge_that_the_scope_admits_clears_it(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(10, company=Ceilings(day=5, week=5))

        await process.charge(1, number=2, company=Ceilings(day=100, week=100))

        record = await budgets.stored()
        assert (record.day.refused_at, record.week.refused_at) == (None, None)

    async def test_a_charge_that_the_scope_refuses_clears_nothing(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(10, company=Ceilings(day=5, week=5))
        process.at += timedelta(minutes=1)

        await process.charge(1, number=2, company=Ceilings(day=100, week=5))

        record = await budgets.stored()
        assert (record.day.refused_at, record.week.refused_at) == (NOON, NOON + timedelta(minutes=1))

    async def test_what_the_company_admits_clears_its_mark_though_the_seat_refuses(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(10, company=Ceilings(day=5))

        await process.charge(1, number=2, company=Ceilings(day=100), seat=Ceilings(day=5))

        marks = [(await budgets.stored(scope)).day.refused_at for scope in (COMPANY_SCOPE, SEAT)]
        assert marks == [None, NOON]

    @pytest.mark.spec("C-070", "C-182")
    async def test_a_window_that_turns_over_takes_its_mark_along(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(10, company=Ceilings(day=5, month=5))
        process.at += timedelta(days=1)

        await process.charge(9, number=2, company=Ceilings(day=100, month=5))

        record = await budgets.stored()
        assert (record.day.refused_at, record.month.refused_at) == (None, process.at)


class BudgetMarks(Contract):
    """A call that was turned away before it was made is marked too."""

    @pytest.mark.spec("C-173")
    async def test_the_company_is_marked_before_the_seat_and_nothing_is_counted(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(10)
        budgets.written.clear()

        marked = await process.refuse(company=Ceilings(day=10), seat=Ceilings(day=10))

        record = await budgets.stored()
        assert (marked, budgets.written) == (["org day"], ["org"])
        assert (record.day.used, record.day.refused_at) == (10, NOON)

    @pytest.mark.spec("C-173")
    async def test_the_seat_is_marked_where_the_company_has_room(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(10)
        budgets.written.clear()

        marked = await process.refuse(company=Ceilings(day=11), seat=Ceilings(day=10, week=9, month=11))

        record = await budgets.stored(SEAT)
        assert marked == ["agent day", "agent week"]
        assert [record.day.refused_at, record.week.refused_at, record.month.refused_at] == [NOON, NOON, None]
        assert len(budgets.written) == 1

    @pytest.mark.spec("C-174")
    async def test_a_window_that_turned_over_or_has_room_is_not_marked_nor_written(self, budgets: BudgetRig) -> None:
        process, cap = await budgets.process(), Ceilings(day=10, month=1000)
        await process.charge(10, company=cap, seat=cap)
        process.at += timedelta(days=1)
        before = [await budgets.revision(scope) for scope in (COMPANY_SCOPE, SEAT)]

        marked = await process.refuse(company=cap, seat=cap)

        assert marked == []
        assert [await budgets.revision(scope) for scope in (COMPANY_SCOPE, SEAT)] == before

    @pytest.mark.spec("C-174")
    async def test_the_counter_is_judged_and_not_what_this_process_remembers(self, budgets: BudgetRig) -> None:
        here, there = await budgets.process(), await budgets.process()
        await here.charge(1)
        await there.charge(9, lane="other")

        marked = await here.refuse(company=Ceilings(day=10))

        assert marked == ["org day"]
        assert (await budgets.stored()).day.refused_at == NOON

    async def test_marking_a_window_of_its_own_leaves_the_others_where_they_are(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(10)
        process.at += timedelta(days=1)

        marked = await process.refuse(company=Ceilings(month=10))

        record = await budgets.stored()
        assert marked == ["org month"]
        assert (record.day.label, record.day.used) == ("2026-09-23", 10)

    async def test_a_ceiling_of_nothing_is_marked_before_anything_was_spent(self, budgets: BudgetRig) -> None:
        process = await budgets.process()

        marked = await process.refuse(company=Ceilings(day=0))

        assert marked == ["org day"]
        assert (await budgets.stored()).day.refused_at == NOON

    async def test_a_clock_that_trails_sets_no_mark_back(self, budgets: BudgetRig) -> None:
        here, late = await budgets.process(), await budgets.process(at=NOON - timedelta(seconds=5))
        await here.charge(10, company=Ceilings(day=5))

        await late.refuse(company=Ceilings(day=5))

        assert (await budgets.stored()).day.refused_at == NOON
