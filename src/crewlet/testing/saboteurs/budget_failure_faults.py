"""Saboteurs of what outlives a failure: outages, halves, and many who charge at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from crewlet.base.errors import Fenced, Unavailable
from crewlet.coordination import (
    COMPANY_SCOPE,
    BudgetRecord,
    Ceilings,
    Period,
    Refusal,
    Revision,
    SeatShareMissing,
    Spend,
    Verdict,
    Windows,
)
from crewlet.coordination.records.budget_line import BudgetLine, LineEntry
from crewlet.coordination.records.budget_upkeep import LaneRemoval
from crewlet.testing.contracts.budgets import (
    BudgetContention,
    BudgetHalves,
    BudgetOutages,
)
from crewlet.testing.saboteurs.budget_saboteur import BudgetSaboteur, EntryFault

__all__ = ["BUDGET_FAILURE_FAULTS"]

Check = Callable[[], None]
Calendar = Callable[[], Windows]
ByScope = Mapping[str, Ceilings | None]


class OutagesAreRefusals(BudgetSaboteur):
    """Who cannot be asked is said to have refused."""

    caught_by = BudgetOutages.test_an_outage_is_told_as_an_outage

    async def _counted(self, spend: Spend, ceilings: ByScope, windows: Calendar, check: Check) -> Verdict:
        try:
            return await super()._counted(spend, ceilings, windows, check)
        except Unavailable:
            label = windows().day
            return Verdict((Refusal(scope=COMPANY_SCOPE, period=Period.DAY, label=label, used=0, ceiling=0),))


class OutagesAdmit(BudgetSaboteur):
    """Who cannot be asked is taken to agree."""

    caught_by = BudgetOutages.test_an_outage_is_told_as_an_outage

    async def _counted(self, spend: Spend, ceilings: ByScope, windows: Calendar, check: Check) -> Verdict:
        try:
            return await super()._counted(spend, ceilings, windows, check)
        except Unavailable:
            return Verdict()


class AnOutageIsTheEndOfIt(EntryFault):
    """What could not be written is given up."""

    caught_by = BudgetOutages.test_what_never_left_is_counted_once_the_store_answers

    @classmethod
    def held_up(cls, entry: LineEntry, error: Unavailable) -> bool:
        entry.held_up(error)
        return False


class AHalfStaysAHalf(AnOutageIsTheEndOfIt):
    """So is the seat's share."""

    caught_by = BudgetHalves.test_the_seats_share_is_counted_once_its_record_can_be_written


class _LastComeFirst(BudgetLine):
    def join(self, entry: LineEntry) -> None:
        super().join(entry)
        self._waiting = {entry: False, **self._waiting}


class TheNewestIsWrittenFirst(BudgetSaboteur):
    """What came later is written before what waits."""

    caught_by = BudgetOutages.test_what_waits_is_counted_in_the_order_in_which_it_came
    line_kind = _LastComeFirst


class TheFenceIsNotAsked(EntryFault):
    """A retry goes out for a seat that moved."""

    caught_by = BudgetOutages.test_a_retry_asks_the_fence_first

    @classmethod
    def check(cls, entry: LineEntry) -> None:
        pass


class TheFenceIsAskedBeforeTheRecord(EntryFault):
    """What landed is given up because the seat moved since."""

    caught_by = BudgetOutages.test_what_landed_before_the_seat_moved_is_answered

    @classmethod
    def stands_in(cls, entry: LineEntry, record: BudgetRecord) -> bool:
        try:
            entry.check()
        except Fenced:
            return False
        return entry.stands_in(record)


class AHalfIsAnOutageLikeAnother(BudgetSaboteur):
    """Nobody is told that the company's record has it."""

    caught_by = BudgetHalves.test_the_seats_missing_share_is_named_and_logged

    async def _counted(self, spend: Spend, ceilings: ByScope, windows: Calendar, check: Check) -> Verdict:
        try:
            return await super()._counted(spend, ceilings, windows, check)
        except SeatShareMissing as error:
            raise Unavailable(str(error)) from error


class _Compensation(LaneRemoval):
    def __init__(self, tokens: int) -> None:
        super().__init__(lambda _: False)
        self._tokens = tokens

    def applied(self, record: BudgetRecord) -> BudgetRecord:
        slots = {each.value: record.slot(each) for each in Period}
        return replace(record, **{name: replace(slot, used=slot.used - self._tokens) for name, slot in slots.items()})


class TheCompanysShareIsTakenBack(BudgetSaboteur):
    """A round that the seat's record lacks is taken from the company's."""

    caught_by = BudgetHalves.test_nothing_is_taken_back_and_the_company_stays_exact

    async def _counted(self, spend: Spend, ceilings: ByScope, windows: Calendar, check: Check) -> Verdict:
        try:
            return await super()._counted(spend, ceilings, windows, check)
        except SeatShareMissing:
            await _Compensation(spend.tokens).made_in(self._line(COMPANY_SCOPE))
            raise


class HangingUpIsTheEndOfIt(BudgetSaboteur):
    """The caller itself carries the charge from one record to the other."""

    caught_by = BudgetHalves.test_a_caller_that_hangs_up_at_once_has_spent_it_all_the_same

    async def _counted(self, spend: Spend, ceilings: ByScope, windows: Calendar, check: Check) -> Verdict:
        refusals: list[Refusal] = []
        for scope, each in ceilings.items():
            verdict = await super()._counted(spend, {scope: each}, windows, check)
            refusals += verdict.refusals
        return Verdict((*refusals,))


class HangingUpDropsWhatWaits(BudgetSaboteur):
    """A caller that is gone takes along what waits in line."""

    caught_by = BudgetHalves.test_a_caller_that_hangs_up_between_the_two_leaves_no_half

    async def _counted(self, spend: Spend, ceilings: ByScope, windows: Calendar, check: Check) -> Verdict:
        try:
            return await super()._counted(spend, ceilings, windows, check)
        except asyncio.CancelledError:
            for line in self._lines.values():
                if line.worker is not None:
                    line.worker.cancel()
            raise


class TheSeatsShareIsNeverAlone(BudgetSaboteur):
    """Spend that is offered again counts in both records again."""

    caught_by = BudgetHalves.test_spend_offered_again_counts_the_seats_share_alone

    async def post_charge(
        self, spend: Spend, *, windows: Calendar, check: Check = lambda: None, seat_alone: bool = False
    ) -> None:
        await super().post_charge(spend, windows=windows, check=check)


class ClosingIsSilent(BudgetSaboteur):
    """What is left in line at the end is not mentioned."""

    caught_by = BudgetHalves.test_what_a_closing_process_could_not_count_is_logged

    async def close(self) -> None:
        self._is_closed = True
        await self._tasks.close()


class _Impatient(BudgetLine):
    def _pauses_s(self) -> Sequence[float]:
        return [0.0] * 15


class EveryChargeIsOnItsOwn(BudgetSaboteur):
    """Each charge writes for itself, and again at once where it lost."""

    caught_by = BudgetContention.test_thirty_two_at_once_all_count_time_after_time

    def _line(self, scope: str) -> BudgetLine:
        return _Impatient(scope, self._store, self._chance, self._tasks)


class _Blind(BudgetLine):
    async def _write(self, record: BudgetRecord, expected: Revision | None) -> None:
        found = await self._store.get(self._key)
        await super()._write(record, None if found is None else found.revision)


class WritesGoOverWhateverStands(BudgetSaboteur):
    """What another process wrote meanwhile is overwritten."""

    caught_by = BudgetContention.test_processes_that_take_turns_lose_nothing_of_each_other
    line_kind = _Blind


class _Apart(BudgetLine):
    def _changes(self, entries: Sequence[LineEntry], record: BudgetRecord) -> list[tuple[LineEntry, BudgetRecord]]:
        together = super()._changes(entries, record)
        alone = {lane: entry.applied(record).lanes[lane] for entry in entries for lane in entry.lanes}
        return [(entry, replace(each, lanes={**each.lanes, **alone})) for entry, each in together]


class WhatComesTogetherIsJudgedApart(BudgetSaboteur):
    """Charges of one write do not see each other."""

    caught_by = BudgetContention.test_what_comes_together_is_judged_in_its_order
    line_kind = _Apart


class _Resigned(BudgetLine):
    def _pauses_s(self) -> Sequence[float]:
        return [0.001] * 2


class ThreeAttemptsAreEnough(BudgetSaboteur):
    """A write that lost three times is given up."""

    caught_by = BudgetContention.test_a_write_that_is_overtaken_every_time_fails_closed_after_sixteen_attempts
    line_kind = _Resigned


BUDGET_FAILURE_FAULTS: tuple[type[BudgetSaboteur], ...] = (
    OutagesAreRefusals,
    OutagesAdmit,
    AnOutageIsTheEndOfIt,
    AHalfStaysAHalf,
    TheNewestIsWrittenFirst,
    TheFenceIsNotAsked,
    TheFenceIsAskedBeforeTheRecord,
    AHalfIsAnOutageLikeAnother,
    TheCompanysShareIsTakenBack,
    HangingUpIsTheEndOfIt,
    HangingUpDropsWhatWaits,
    TheSeatsShareIsNeverAlone,
    ClosingIsSilent,
    EveryChargeIsOnItsOwn,
    WritesGoOverWhateverStands,
    WhatComesTogetherIsJudgedApart,
    ThreeAttemptsAreEnough,
)
