"""Promises about lanes, by which a charge is known again: nothing is counted twice, and nothing is left uncounted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import COMPANY_SCOPE, Ceilings, SeatShareMissing
from crewlet.testing.contracts.budget_rig import ADA, NOON, SEAT, BudgetRig
from crewlet.testing.contracts.contract import Contract

__all__ = ["BudgetCompletion", "BudgetLaneEnds"]


class BudgetCompletion(Contract):
    """Whoever has to know what became of a charge makes it again, under the same number of the same lane."""

    async def test_a_charge_made_again_counts_once_and_is_answered_as_it_was(self, budgets: BudgetRig) -> None:
        here, there, cap = await budgets.process(), await budgets.process(), Ceilings(day=5)
        first = await here.charge(10, company=cap)
        revision = await budgets.revision()

        again = await there.charge(10, company=Ceilings(day=1000))

        assert await budgets.revision() == revision
        assert [each.period for each in again.refusals] == [each.period for each in first.refusals]
        assert (again.admitted, again.refusals[0].used, again.refusals[0].ceiling) == (False, 10, 1000)

    async def test_the_next_number_of_a_lane_counts(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(10)

        await process.charge(10, number=2)

        assert await process.used() == (20, 20, 20)

    async def test_lanes_do_not_touch_each_other(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(1, lane="turn", number=5)

        await process.charge(2, lane="turn/worker")
        await process.charge(4, lane="another")

        assert await process.used() == (7, 7, 7)

    async def test_an_earlier_number_of_a_lane_that_went_on_is_not_counted_again(self, budgets: BudgetRig) -> None:
        here, there = await budgets.process(), await budgets.process()
        await here.charge(10, company=Ceilings(day=5))
        await here.charge(10, number=2)

        verdict = await there.charge(10, company=Ceilings(day=5))

        assert verdict.admitted
        assert await there.used() == (20, 20, 20)

    async def test_a_successor_counts_in_the_record_that_has_it_not(self, budgets: BudgetRig) -> None:
        dead, successor = await budgets.process(), await budgets.process()
        dead.store.refuse(SEAT)
        with pytest.raises(SeatShareMissing):
            await dead.charge(10, company=Ceilings(day=5))
        await budgets.records.disturb()

        verdict = await successor.charge(10, company=Ceilings(day=1000), seat=Ceilings(day=5))

        assert [await successor.used(each) for each in (COMPANY_SCOPE, SEAT)] == [(10, 10, 10), (10, 10, 10)]
        assert [each.scope for each in verdict.refusals] == [COMPANY_SCOPE, SEAT]

    async def test_a_completion_counts_in_the_windows_of_its_write(self, budgets: BudgetRig) -> None:
        dead, successor = await budgets.process(), await budgets.process(at=NOON + timedelta(days=1))
        dead.store.refuse(SEAT)
        with pytest.raises(SeatShareMissing):
            await dead.charge(10)

        await successor.charge(10)

        labels = [(await budgets.stored(scope)).day.label for scope in (COMPANY_SCOPE, SEAT)]
        assert labels == ["2026-09-23", "2026-09-24"]

    @pytest.mark.spec("C-187")
    async def test_a_charge_that_waited_over_a_boundary_counts_behind_it(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        process.store.refuse(COMPANY_SCOPE)
        with pytest.raises(Unavailable):
            await process.charge(10)

        process.at += timedelta(days=1)
        process.store.let(COMPANY_SCOPE)
        await process.charge(10)

        assert (await budgets.stored()).day.label == "2026-09-24"

    async def test_a_roll_leaves_the_lanes_alone(self, budgets: BudgetRig) -> None:
        here, there = await budgets.process(), await budgets.process(at=NOON + timedelta(days=1))
        await here.charge(10)
        await there.charge(1, lane="other")

        await there.charge(10)

        assert await there.used() == (1, 11, 11)


class BudgetLaneEnds(Contract):
    """A lane goes once nobody can ask for it any more."""

    async def test_a_turns_lanes_go_ten_minutes_after_its_end_with_a_write(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(1)
        await process.charge(1, lane="turn/worker")
        await process.charge(1, lane="turned")
        process.budgets.forget_turn("turn", ADA)
        await process.charge(1, lane="soon")
        soon = [sorted((await budgets.stored(scope)).lanes) for scope in (COMPANY_SCOPE, SEAT)]

        for ended in range(limits.BUDGET_ENDED_TURNS_MAX):
            process.budgets.forget_turn(f"later{ended}", ADA)
        await process.charge(1, lane="then")

        assert soon == [["soon", "turn", "turn/worker", "turned"]] * 2
        for scope in (COMPANY_SCOPE, SEAT):
            assert sorted((await budgets.stored(scope)).lanes) == ["soon", "then", "turned"]

    async def test_a_lane_that_waits_to_be_decided_stays(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        process.store.refuse(SEAT)
        with pytest.raises(SeatShareMissing):
            await process.charge(1)

        for ended in ["turn", *map(str, range(limits.BUDGET_ENDED_TURNS_MAX))]:
            process.budgets.forget_turn(ended, ADA)
        process.store.let(SEAT)
        await process.charge(1, lane="other")
        await process.charge(1)

        assert await process.used(SEAT) == (2, 2, 2)

    async def test_a_process_that_closes_takes_the_lanes_of_its_turns_along(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(1)
        await process.charge(1, lane="goes on elsewhere")
        process.budgets.forget_turn("turn", ADA)

        await process.budgets.close()

        for scope in (COMPANY_SCOPE, SEAT):
            assert sorted((await budgets.stored(scope)).lanes) == ["goes on elsewhere"]

    async def test_a_lane_goes_that_nobody_charged_for_more_than_eight_days(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(1, lane="old")
        process.at += timedelta(days=1)
        await process.charge(1, lane="eight")
        process.at += timedelta(days=8)

        await process.charge(1, lane="now")

        for scope in (COMPANY_SCOPE, SEAT):
            assert sorted((await budgets.stored(scope)).lanes) == ["eight", "now"]

    async def test_the_lanes_of_what_is_over_are_taken_from_every_record(self, budgets: BudgetRig) -> None:
        process, other = await budgets.process(), await budgets.process()
        await process.charge(1, lane="node-0:aa")
        await process.charge(1, lane="node-0:aa", number=2, agent="another")
        await process.charge(1, lane="node-0:bb", number=1)
        before = await budgets.revision("agent:nobody")

        await other.budgets.remove_lanes(lambda lane: lane == "node-0:aa")

        lanes = [sorted((await budgets.stored(scope)).lanes) for scope in (COMPANY_SCOPE, SEAT, "agent:another")]
        assert lanes == [["node-0:bb"], ["node-0:bb"], []]
        assert await budgets.revision("agent:nobody") == before
        assert await other.used() == (3, 3, 3)
