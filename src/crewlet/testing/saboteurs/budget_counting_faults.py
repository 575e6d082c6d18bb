"""Saboteurs of what is counted and what the gate says: spend left out, ceilings overlooked, marks misplaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from crewlet.coordination import (
    COMPANY_SCOPE,
    UNCAPPED,
    BudgetRecord,
    Ceilings,
    Period,
    Refusal,
    Spend,
    Verdict,
    Windows,
    agent_scope,
)
from crewlet.coordination.records.budget_charge import Share
from crewlet.coordination.records.budget_line import BudgetLine, LineEntry
from crewlet.coordination.records.budget_record import as_found, counted
from crewlet.coordination.records.budget_upkeep import RefusalMark
from crewlet.testing.contracts.budgets import BudgetCounting, BudgetGate, BudgetMarks, BudgetRefusals, BudgetTurning
from crewlet.testing.saboteurs.budget_saboteur import BudgetSaboteur, EntryFault

__all__ = ["BUDGET_COUNTING_FAULTS"]


class RefusedSpendIsNotCounted(EntryFault):
    """A round that is refused leaves the counters as they were."""

    caught_by = BudgetGate.test_a_refused_charge_counts_in_both_whoever_refused

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        after = share.applied(record)
        if not after.lanes[share.spend.lane].refused:
            return after
        slots = {each.value: replace(after.slot(each), used=record.slot(each).used) for each in Period}
        return replace(after, **slots)


class WhoRefusesAloneCounts(BudgetSaboteur):
    """What the company refuses is not counted in the seat's record."""

    caught_by = BudgetGate.test_a_refused_charge_counts_in_both_whoever_refused

    async def charge(
        self,
        spend: Spend,
        *,
        windows: Callable[[], Windows],
        check: Callable[[], None] = lambda: None,
        company: Ceilings = UNCAPPED,
        seat: Ceilings = UNCAPPED,
    ) -> Verdict:
        verdict = await self._counted(spend, {COMPANY_SCOPE: company}, windows, check)
        if not verdict.admitted:
            return verdict
        return await super().charge(spend, windows=windows, check=check, company=company, seat=seat)


class RefusedSpendMakesNoFurtherRefusal(EntryFault):
    """A refused round is counted, and the room that it used is lent out again."""

    caught_by = BudgetGate.test_a_refused_round_uses_up_the_room_that_it_was_refused_for

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        over = {
            each: slot.used - ceiling
            for each in Period
            if (ceiling := (share.ceilings or UNCAPPED).of(each)) is not None
            and (slot := record.slot(each)).used > ceiling
        }
        lent = {each.value: replace(record.slot(each), used=record.slot(each).used - 3) for each in over}
        return share.applied(replace(record, **lent))


class TheSeatIsWrittenFirst(BudgetSaboteur):
    """The seat's record before the company's."""

    caught_by = BudgetCounting.test_a_charge_is_one_write_of_the_company_and_then_one_of_the_seat

    async def _counted(
        self,
        spend: Spend,
        ceilings: Mapping[str, Ceilings | None],
        windows: Callable[[], Windows],
        check: Callable[[], None],
    ) -> Verdict:
        return await super()._counted(spend, dict(reversed([*ceilings.items()])), windows, check)


class EveryChargeReads(EntryFault):
    """What a process has just written it reads again."""

    caught_by = BudgetCounting.test_a_record_that_nobody_else_wrote_is_not_read_again

    @classmethod
    def reads_first(cls, entry: LineEntry) -> bool:
        return True


class TheWeekIsForgotten(EntryFault):
    """Two windows of three are counted."""

    caught_by = BudgetCounting.test_a_charge_counts_in_the_three_windows_of_both_records

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        return replace(share.applied(record), week=record.week)


class UncappedWindowsAreNotCounted(EntryFault):
    """What has no ceiling is not counted."""

    caught_by = BudgetCounting.test_a_ceiling_set_later_finds_what_was_spent_in_its_window

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        after = share.applied(record)
        open_ended = [each for each in Period if (share.ceilings or UNCAPPED).of(each) is None]
        return replace(after, **{each.value: replace(after.slot(each), used=0) for each in open_ended})


class EachProcessCountsForItself(BudgetSaboteur):
    """A counter for each process, as if it were alone."""

    caught_by = BudgetCounting.test_four_processes_spend_what_one_may

    def _line(self, scope: str) -> BudgetLine:
        return super()._line(f"{scope}{id(self)}" if scope == COMPANY_SCOPE else scope)


class TheCompanyAloneIsASeatToo(BudgetSaboteur):
    """Spend of no seat is put on one."""

    caught_by = BudgetCounting.test_spend_of_the_company_alone_is_no_seats

    async def _counted(
        self,
        spend: Spend,
        ceilings: Mapping[str, Ceilings | None],
        windows: Callable[[], Windows],
        check: Callable[[], None],
    ) -> Verdict:
        return await super()._counted(spend, {**ceilings, agent_scope("nobody"): None}, windows, check)


class AfterwardsIsJudgedToo(BudgetSaboteur):
    """What is only recorded is taken for admitted."""

    caught_by = BudgetCounting.test_what_is_counted_afterwards_is_not_judged_and_clears_nothing

    async def _counted(
        self,
        spend: Spend,
        ceilings: Mapping[str, Ceilings | None],
        windows: Callable[[], Windows],
        check: Callable[[], None],
    ) -> Verdict:
        judged = {scope: each or UNCAPPED for scope, each in ceilings.items()}
        return await super()._counted(spend, judged, windows, check)


class TheDayAloneIsJudged(EntryFault):
    """Ceilings of weeks and months are overlooked."""

    caught_by = BudgetGate.test_any_full_window_of_either_scope_refuses

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        share.ceilings = Ceilings(day=share.ceilings.day) if share.ceilings else None
        return share.applied(record)


class TheSeatIsNotJudged(EntryFault):
    """Ceilings of seats are overlooked."""

    caught_by = BudgetGate.test_any_full_window_of_either_scope_refuses

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        share.ceilings = share.ceilings if share.scope == COMPANY_SCOPE else UNCAPPED
        return share.applied(record)


class _ShiftedCeilings(EntryFault):
    more = 0

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        found = share.ceilings
        if found is not None:
            shifted = {each.value: cap + cls.more for each in Period if (cap := found.of(each)) is not None}
            share.ceilings = Ceilings(**shifted)
        return share.applied(record)


class WhatJustFitsIsRefused(_ShiftedCeilings):
    """The last token of a ceiling is never spent."""

    caught_by = BudgetGate.test_what_just_fits_is_admitted
    more = -1


class NothingFitsIntoAFullWindow(EntryFault):
    """A reply of no tokens passes a full window."""

    caught_by = BudgetGate.test_a_window_that_is_full_refuses_even_a_reply_of_no_tokens

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        share.ceilings = share.ceilings if share.spend.tokens else UNCAPPED
        return share.applied(record)


class CeilingsAreTakenFromTheMark(EntryFault):
    """What refused once in a window refuses until it turns over, whatever its ceiling is now."""

    caught_by = BudgetGate.test_a_raised_ceiling_makes_room_at_once

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        if any(record.slot(each).refused_at for each in Period):
            share.ceilings = Ceilings(day=0)
        return share.applied(record)


class NoMarkIsLeft(EntryFault):
    """A refusal is told to its caller alone."""

    caught_by = BudgetRefusals.test_every_process_reads_when_a_call_was_last_turned_away

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        after = share.applied(record)
        return replace(after, **{each.value: replace(after.slot(each), refused_at=None) for each in Period})


class MarksStay(EntryFault):
    """A charge that is admitted leaves the mark of an earlier refusal."""

    caught_by = BudgetRefusals.test_the_next_charge_that_the_scope_admits_clears_it

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        found, after = as_found(record, share.charge.windows()), share.applied(record)
        slots = {
            each.value: replace(after.slot(each), refused_at=after.slot(each).refused_at or found.slot(each).refused_at)
            for each in Period
        }
        return replace(after, **slots)


class ARefusalClearsTheOtherMarks(EntryFault):
    """A charge that another window refuses takes this one's mark."""

    caught_by = BudgetRefusals.test_a_charge_that_the_scope_refuses_clears_nothing

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        after = share.applied(record)
        refused = after.lanes[share.spend.lane].refused
        others = [each for each in Period if each not in refused]
        return replace(after, **{each.value: replace(after.slot(each), refused_at=None) for each in others})


class MarksAreClearedByTheWholeVerdict(EntryFault):
    """The company's mark waits for a charge that the seat admits too."""

    caught_by = BudgetRefusals.test_what_the_company_admits_clears_its_mark_though_the_seat_refuses

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        after = share.applied(record)
        if share.scope == COMPANY_SCOPE and record.day.refused_at is not None:
            return replace(after, day=replace(after.day, refused_at=record.day.refused_at))
        return after


class MarksOutliveTheirWindow(EntryFault):
    """A window that turns over keeps the mark, until something is admitted."""

    caught_by = BudgetRefusals.test_a_window_that_turns_over_takes_its_mark_along

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        after = share.applied(record)
        if not after.lanes[share.spend.lane].refused:
            return after
        kept = {
            each.value: replace(
                after.slot(each), refused_at=after.slot(each).refused_at or record.slot(each).refused_at
            )
            for each in Period
        }
        return replace(after, **kept)


class TheSeatIsMarkedFirst(BudgetSaboteur):
    """Where both are full the seat bears the mark."""

    caught_by = BudgetMarks.test_the_company_is_marked_before_the_seat_and_nothing_is_counted

    async def refuse(
        self, windows: Windows, *, agent_id: str = "", company: Ceilings = UNCAPPED, seat: Ceilings = UNCAPPED
    ) -> Sequence[Refusal]:
        marked = await super().refuse(windows, agent_id=agent_id, seat=seat)
        return marked or await super().refuse(windows, agent_id=agent_id, company=company)


class TheCompanyAloneIsMarked(BudgetSaboteur):
    """The seat is not looked at."""

    caught_by = BudgetMarks.test_the_seat_is_marked_where_the_company_has_room

    async def refuse(
        self, windows: Windows, *, agent_id: str = "", company: Ceilings = UNCAPPED, seat: Ceilings = UNCAPPED
    ) -> Sequence[Refusal]:
        return await super().refuse(windows, company=company)


class MarksAreMadeWhereThereIsRoom(EntryFault):
    """Every capped window is marked."""

    caught_by = BudgetMarks.test_a_window_that_turned_over_or_has_room_is_not_marked_nor_written

    @classmethod
    def applied(cls, entry: LineEntry, record: BudgetRecord) -> BudgetRecord:
        if not isinstance(entry, RefusalMark):
            return entry.applied(record)
        capped = [each for each in Period if entry.ceilings.of(each) is not None]
        slots = {each.value: replace(record.slot(each), refused_at=entry.windows.at) for each in capped}
        return replace(record, **slots)


class MarksTurnWindowsOver(EntryFault):
    """A mark moves every window on, its own and the others."""

    caught_by = BudgetMarks.test_marking_a_window_of_its_own_leaves_the_others_where_they_are

    @classmethod
    def applied(cls, entry: LineEntry, record: BudgetRecord) -> BudgetRecord:
        after = entry.applied(record)
        return as_found(after, entry.windows) if isinstance(entry, RefusalMark) and after != record else after


class MarksAreJudgedByMemory(EntryFault):
    """What this process saw last decides whether there is room."""

    caught_by = BudgetMarks.test_the_counter_is_judged_and_not_what_this_process_remembers

    @classmethod
    def reads_first(cls, entry: LineEntry) -> bool:
        return False


class WhatWasNeverSpentIsNotMarked(EntryFault):
    """A record that is not there is never marked."""

    caught_by = BudgetMarks.test_a_ceiling_of_nothing_is_marked_before_anything_was_spent

    @classmethod
    def applied(cls, entry: LineEntry, record: BudgetRecord) -> BudgetRecord:
        return record if isinstance(entry, RefusalMark) and not record.day.label else super().applied(entry, record)


class MarksGoBack(EntryFault):
    """The mark of the clock that trails takes the place of a later one."""

    caught_by = BudgetMarks.test_a_clock_that_trails_sets_no_mark_back

    @classmethod
    def applied(cls, entry: LineEntry, record: BudgetRecord) -> BudgetRecord:
        if not isinstance(entry, RefusalMark):
            return entry.applied(record)
        return entry.applied(replace(record, day=replace(record.day, refused_at=None)))


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


BUDGET_COUNTING_FAULTS: tuple[type[BudgetSaboteur], ...] = (
    RefusedSpendIsNotCounted,
    WhoRefusesAloneCounts,
    RefusedSpendMakesNoFurtherRefusal,
    TheSeatIsWrittenFirst,
    EveryChargeReads,
    TheWeekIsForgotten,
    UncappedWindowsAreNotCounted,
    EachProcessCountsForItself,
    TheCompanyAloneIsASeatToo,
    AfterwardsIsJudgedToo,
    TheDayAloneIsJudged,
    TheSeatIsNotJudged,
    WhatJustFitsIsRefused,
    NothingFitsIntoAFullWindow,
    CeilingsAreTakenFromTheMark,
    NoMarkIsLeft,
    MarksStay,
    ARefusalClearsTheOtherMarks,
    MarksAreClearedByTheWholeVerdict,
    MarksOutliveTheirWindow,
    TheSeatIsMarkedFirst,
    TheCompanyAloneIsMarked,
    MarksAreMadeWhereThereIsRoom,
    MarksTurnWindowsOver,
    MarksAreJudgedByMemory,
    WhatWasNeverSpentIsNotMarked,
    MarksGoBack,
    SlotsGoBack,
    SlotsGoBackOverAMove,
    WindowsNeverTurnOver,
    TurningOverTakesTwoWrites,
    ReadsGoBack,
    ReadsStayBehind,
    TheCalendarIsItsOwn,
)
