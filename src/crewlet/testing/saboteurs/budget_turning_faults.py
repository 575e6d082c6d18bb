"""Saboteurs of windows that turn over: back, twice, never."""

from __future__ import annotations

from msgspec.structs import replace

from crewlet.coordination import (
    BudgetRecord,
    Windows,
)
from crewlet.coordination.records.budget_charge import Share
from crewlet.coordination.records.budget_record import counted
from crewlet.testing.contracts.budgets import BudgetTurning
from crewlet.testing.saboteurs.budget_saboteur import BudgetSaboteur, EntryFault

__all__ = ["BUDGET_TURNING_FAULTS"]


class SlotsGoBack(EntryFault):
    """A clock that trails brings the earlier window back, unspent."""

    caught_by = BudgetTurning.test_a_clock_that_trails_counts_in_the_later_window

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        back = {
            period.value: replace(record.slot(period), label=label, used=0, refused_at=None)
            for period, label in share.charge.windows()
            if record.slot(period).label > label
        }
        return share.applied(replace(record, **back))


class SlotsGoBackOverAMove(SlotsGoBack):
    """So does a company that moves west."""

    caught_by = BudgetTurning.test_a_company_that_moves_west_goes_on_in_the_day_that_it_was_in


class WindowsNeverTurnOver(EntryFault):
    """The day that a record began with goes on for ever."""

    caught_by = BudgetTurning.test_the_first_charge_behind_a_boundary_begins_anew

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        after = share.applied(record)
        if not record.day.label:
            return after
        return replace(after, day=replace(after.day, used=record.day.used + share.spend.tokens))


class TurningOverTakesTwoWrites(EntryFault):
    """The first charge behind a boundary moves the windows on and counts nothing in the week."""

    caught_by = BudgetTurning.test_two_processes_that_turn_it_over_at_once_lose_nothing

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        after = share.applied(record)
        return replace(after, week=record.week) if record.day.label < after.day.label and record.day.label else after


class ReadsGoBack(BudgetSaboteur):
    """A read answers with the window that was asked for, unspent, though the slot is ahead of it."""

    caught_by = BudgetTurning.test_a_read_behind_a_slot_answers_with_the_later_window

    async def spent(self, scope: str, windows: Windows) -> BudgetRecord:
        record = await super().spent(scope, windows)
        back = {
            period.value: replace(record.slot(period), label=label, used=0, refused_at=None)
            for period, label in windows
            if record.slot(period).label > label
        }
        return replace(record, **back)


class ReadsStayBehind(BudgetSaboteur):
    """A read behind a boundary answers with what was spent before it."""

    caught_by = BudgetTurning.test_a_read_behind_a_boundary_answers_with_the_new_window_unspent

    async def spent(self, scope: str, windows: Windows) -> BudgetRecord:
        long_ago = Windows(windows.at, windows.zone, day="0001-01-01", week="0001-W01", month="0001-01")
        return await super().spent(scope, long_ago)


class TheCalendarIsItsOwn(EntryFault):
    """Windows of another year than this one are taken for this one's."""

    caught_by = BudgetTurning.test_the_calendar_is_the_callers

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        windows, spend = share.charge.windows(), share.spend
        this_year = Windows(windows.at, windows.zone, f"2026{windows.day[4:]}", "2026-W39", f"2026{windows.month[4:]}")
        return counted(record, this_year, spend.tokens, lane=spend.lane, number=spend.number, ceilings=share.ceilings)


BUDGET_TURNING_FAULTS: tuple[type[BudgetSaboteur], ...] = (
    SlotsGoBack,
    SlotsGoBackOverAMove,
    WindowsNeverTurnOver,
    TurningOverTakesTwoWrites,
    ReadsGoBack,
    ReadsStayBehind,
    TheCalendarIsItsOwn,
)
