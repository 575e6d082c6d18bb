"""Saboteurs of the marks that refusals leave: missing, misplaced, kept too long."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from crewlet.coordination import (
    COMPANY_SCOPE,
    UNCAPPED,
    BudgetRecord,
    Ceilings,
    Period,
    Refusal,
    Windows,
)
from crewlet.coordination.records.budget_charge import Share
from crewlet.coordination.records.budget_line import LineEntry
from crewlet.coordination.records.budget_record import as_found
from crewlet.coordination.records.budget_upkeep import RefusalMark
from crewlet.testing.contracts.budgets import BudgetMarks, BudgetRefusals
from crewlet.testing.saboteurs.budget_saboteur import BudgetSaboteur, EntryFault

__all__ = ["BUDGET_MARK_FAULTS"]


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


BUDGET_MARK_FAULTS: tuple[type[BudgetSaboteur], ...] = (
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
)
