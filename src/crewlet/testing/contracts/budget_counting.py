"""Promises about what a charge counts, where, and what the gate says to it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import product

import pytest

from crewlet.coordination import COMPANY_SCOPE, UNCAPPED, Ceilings, Period
from crewlet.testing.contracts.budget_rig import ADA, NOON, SEAT, BudgetRig
from crewlet.testing.contracts.contract import Contract

__all__ = ["BudgetCounting", "BudgetGate"]


class BudgetCounting(Contract):
    """What is counted."""

    @pytest.mark.spec("C-069")
    async def test_a_charge_counts_in_the_three_windows_of_both_records(self, budgets: BudgetRig) -> None:
        process = await budgets.process()

        await process.charge(70)

        for scope in (COMPANY_SCOPE, SEAT):
            record = await budgets.stored(scope)
            slots = [(record.slot(period).label, record.slot(period).used) for period in Period]
            assert slots == [("2026-09-23", 70), ("2026-W39", 70), ("2026-09", 70)]

    @pytest.mark.spec("C-169")
    async def test_a_charge_is_one_write_of_the_company_and_then_one_of_the_seat(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(1)
        budgets.written.clear()

        await process.charge(1, number=2)

        assert budgets.written == ["org", f"agent.{ADA}"]
        assert process.store.attempts == 4

    async def test_a_record_that_nobody_else_wrote_is_not_read_again(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(1)
        reads = process.store.reads

        await process.charge(1, number=2)

        assert (reads, process.store.reads) == (2, 2)

    @pytest.mark.spec("C-170")
    async def test_a_ceiling_set_later_finds_what_was_spent_in_its_window(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(90, company=Ceilings(day=1000))
        process.at += timedelta(days=1)

        verdict = await process.charge(20, number=2, company=Ceilings(day=1000, month=100))

        assert [(each.period, each.used) for each in verdict.refusals] == [(Period.MONTH, 110)]

    @pytest.mark.spec("C-071")
    async def test_four_processes_spend_what_one_may(self, budgets: BudgetRig) -> None:
        processes = [await budgets.process() for _ in range(4)]
        cap, admitted = Ceilings(day=500_000), 0

        async def spend(node: int) -> None:
            nonlocal admitted
            for number in range(1, 11):
                verdict = await processes[node].charge(25_000, lane=f"turn{node}", number=number, company=cap)
                admitted += 25_000 if verdict.admitted else 0

        await asyncio.gather(*(spend(node) for node in range(4)))

        assert admitted == 500_000
        assert (await budgets.stored()).day.used == 4 * 10 * 25_000

    async def test_spend_of_the_company_alone_is_no_seats(self, budgets: BudgetRig) -> None:
        process = await budgets.process()

        await process.charge(5, agent="")

        assert budgets.written == ["org"]

    async def test_what_is_counted_afterwards_is_not_judged_and_clears_nothing(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(10, company=Ceilings(day=5))

        await process.post_charge(3)

        record = await budgets.stored()
        assert (record.day.used, record.day.refused_at) == (13, NOON)
        assert (await budgets.stored(SEAT)).day.used == 13

    async def test_counting_goes_on_after_a_change_of_leader(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(1)

        await budgets.records.disturb()
        await process.charge(2, number=2)

        assert await process.used() == (3, 3, 3)


class BudgetGate(Contract):
    """What is admitted."""

    @pytest.mark.spec("C-168")
    async def test_any_full_window_of_either_scope_refuses(self, budgets: BudgetRig) -> None:
        process = await budgets.process()

        for number, (scope, period) in enumerate(product((COMPANY_SCOPE, SEAT), Period), 1):
            cap = Ceilings(**{period.value: 10 * number - 1})
            company, seat = (cap, UNCAPPED) if scope == COMPANY_SCOPE else (UNCAPPED, cap)
            verdict = await process.charge(10, number=number, company=company, seat=seat)

            found = [(each.scope, each.period, each.used, each.ceiling) for each in verdict.refusals]
            assert found == [(scope, period, 10 * number, 10 * number - 1)]

    async def test_what_just_fits_is_admitted(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(98, company=Ceilings(day=100))

        verdict = await process.charge(2, number=2, company=Ceilings(day=100), seat=Ceilings(week=100))

        assert verdict.admitted

    @pytest.mark.spec("C-171")
    async def test_a_refused_round_uses_up_the_room_that_it_was_refused_for(self, budgets: BudgetRig) -> None:
        process, cap = await budgets.process(), Ceilings(day=100)
        await process.charge(98, company=cap)

        over = await process.charge(3, number=2, company=cap)
        small = await process.charge(1, number=3, company=cap)

        assert [[each.used for each in verdict.refusals] for verdict in (over, small)] == [[101], [102]]

    @pytest.mark.spec("C-171")
    async def test_a_refused_charge_counts_in_both_whoever_refused(self, budgets: BudgetRig) -> None:
        process = await budgets.process()

        by_company = await process.charge(7, company=Ceilings(month=5))
        by_seat = await process.charge(7, number=2, seat=Ceilings(month=5))

        assert (by_company.admitted, by_seat.admitted) == (False, False)
        assert [await process.used(each) for each in (COMPANY_SCOPE, SEAT)] == [(14, 14, 14), (14, 14, 14)]

    async def test_a_window_that_is_full_refuses_even_a_reply_of_no_tokens(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(100, company=Ceilings(day=100))

        assert not (await process.charge(0, number=2, company=Ceilings(day=100))).admitted
        assert (await process.charge(0, number=3, company=Ceilings(day=101))).admitted

    @pytest.mark.spec("C-184")
    async def test_a_raised_ceiling_makes_room_at_once(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        refused = await process.charge(101, company=Ceilings(day=100))

        admitted = await process.charge(1, number=2, company=Ceilings(day=200))

        assert (refused.admitted, admitted.admitted) == (False, True)
