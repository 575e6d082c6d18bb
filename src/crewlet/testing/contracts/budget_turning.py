"""Promises about windows that turn over: the roll is inside the charge's write, and never goes back."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from crewlet.coordination import SLOTS, Ceilings, Windows
from crewlet.testing.contracts.budget_rig import NOON, BudgetRig
from crewlet.testing.contracts.contract import Contract

__all__ = ["BudgetTurning"]

_MONTHS_END = datetime(2026, 11, 30, 23, 59, 58, tzinfo=UTC)
"""A Monday: the next day is in the same week and in another month."""


class BudgetTurning(Contract):
    """One window after another."""

    @pytest.mark.spec("C-130", "C-182")
    async def test_the_first_charge_behind_a_boundary_begins_anew(self, budgets: BudgetRig) -> None:
        process, cap = await budgets.process(at=_MONTHS_END), Ceilings(day=10)
        refused = await process.charge(11, company=cap)
        written = len(budgets.written)
        process.at += timedelta(seconds=5)

        admitted = await process.charge(4, number=2, company=cap)

        assert (refused.admitted, admitted.admitted) == (False, True)
        assert await process.used() == (4, 15, 4)
        assert len(budgets.written) == written + 2
        assert next(slot.age_s for slot in SLOTS if slot.name == "budgets") == 32 * 86400.0

    @pytest.mark.spec("C-183")
    async def test_two_processes_that_turn_it_over_at_once_lose_nothing(self, budgets: BudgetRig) -> None:
        here, there = await budgets.process(), await budgets.process()
        await here.charge(50)
        await there.charge(50, lane="other")
        here.at = there.at = NOON + timedelta(days=1)
        await budgets.records.disturb()

        await asyncio.gather(here.charge(3, number=2), there.charge(4, lane="other", number=2))

        record = await budgets.stored()
        assert (record.day.label, record.day.used, record.week.used) == ("2026-09-24", 7, 107)

    @pytest.mark.spec("C-185")
    async def test_a_clock_that_trails_counts_in_the_later_window(self, budgets: BudgetRig) -> None:
        late, ahead = await budgets.process(at=_MONTHS_END), await budgets.process(at=_MONTHS_END)
        await late.charge(10)
        ahead.at += timedelta(seconds=4)
        await ahead.charge(20, lane="other")

        verdict = await late.charge(5, number=2, company=Ceilings(day=24))

        record = await budgets.stored()
        assert (record.day.label, record.day.used, record.month.label) == ("2026-12-01", 25, "2026-12")
        assert [(each.label, each.used) for each in verdict.refusals] == [("2026-12-01", 25)]

    @pytest.mark.spec("C-186")
    async def test_a_read_behind_a_slot_answers_with_the_later_window(self, budgets: BudgetRig) -> None:
        late, ahead = await budgets.process(at=_MONTHS_END), await budgets.process(at=_MONTHS_END)
        ahead.at += timedelta(seconds=4)
        await ahead.charge(20, company=Ceilings(day=5))

        record = await late.spent()

        assert record.day == (await budgets.stored()).day
        assert (record.day.label, record.day.used, record.day.refused_at) == ("2026-12-01", 20, ahead.at)

    async def test_a_read_behind_a_boundary_answers_with_the_new_window_unspent(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        await process.charge(20, company=Ceilings(day=5))
        process.at += timedelta(days=1)
        revision = await budgets.revision()

        record = await process.spent()

        assert (record.day.label, record.day.used, record.day.refused_at) == ("2026-09-24", 0, None)
        assert (record.week.used, await budgets.revision()) == (20, revision)

    @pytest.mark.spec("C-185")
    async def test_a_company_that_moves_west_goes_on_in_the_day_that_it_was_in(self, budgets: BudgetRig) -> None:
        process = await budgets.process(at=datetime(2026, 9, 30, 15, 30, tzinfo=UTC), zone="Asia/Tokyo")
        await process.charge(5)
        process.zone = ZoneInfo("America/Los_Angeles")

        await process.charge(6, number=2)

        record = await budgets.stored()
        assert (record.day.label, record.day.used, record.month.label) == ("2026-10-01", 11, "2026-10")

    @pytest.mark.spec("C-187")
    async def test_the_calendar_is_the_callers(self, budgets: BudgetRig) -> None:
        process = await budgets.process()
        process.at = datetime(1999, 12, 31, 12, tzinfo=UTC)
        await process.charge(5)
        process.at = datetime(2040, 1, 1, 12, tzinfo=UTC)

        await process.charge(6, number=2)
        asked = Windows(process.at, process.zone, day="1871-03-04", week="2040-W01", month="2040-01")
        spent = await process.budgets.spent("org", asked)

        assert [spent.day.label, spent.week.label, spent.month.label] == ["2040-01-01", "2040-W01", "2040-01"]
        assert [spent.day.used, spent.week.used, spent.month.used] == [6, 0, 6]
        assert (await budgets.stored()).day.used == 6
