"""Saboteurs of what is counted and what the gate says: spend left out, ceilings overlooked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from crewlet.coordination import (
    COMPANY_SCOPE,
    UNCAPPED,
    BudgetRecord,
    Ceilings,
    Period,
    Spend,
    Verdict,
    Windows,
    agent_scope,
)
from crewlet.coordination.records.budget_charge import Share
from crewlet.coordination.records.budget_line import BudgetLine, LineEntry
from crewlet.testing.contracts.budgets import BudgetCounting, BudgetGate
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
)
