"""Saboteurs of lanes: charges that are not known again, lanes that go too soon or stay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace as replaced
from typing import ClassVar

from msgspec.structs import replace

from crewlet.coordination import (
    COMPANY_SCOPE,
    BudgetRecord,
    Ceilings,
    Spend,
    Verdict,
    Windows,
)
from crewlet.coordination.records.budget_charge import Share
from crewlet.coordination.records.budget_line import BudgetLine, LineEntry
from crewlet.coordination.records.budget_record import counted, landed
from crewlet.coordination.records.budget_upkeep import LaneRemoval
from crewlet.testing.contracts.budgets import (
    BudgetCompletion,
    BudgetLaneEnds,
    BudgetOutages,
)
from crewlet.testing.saboteurs.budget_saboteur import BudgetSaboteur, EntryFault

__all__ = ["BUDGET_LANE_FAULTS"]

Check = Callable[[], None]
Calendar = Callable[[], Windows]
ByScope = Mapping[str, Ceilings | None]


class ChargesCountAgain(EntryFault):
    """A charge is counted each time that it is made."""

    caught_by = BudgetCompletion.test_a_charge_made_again_counts_once_and_is_answered_as_it_was

    @classmethod
    def stands_in(cls, entry: LineEntry, record: BudgetRecord) -> bool:
        return False


class WhatLandedUnheardCountsAgain(ChargesCountAgain):
    """So is one whose answer was lost."""

    caught_by = BudgetOutages.test_what_landed_unheard_is_counted_once


class WhatLandsLateCountsAgain(ChargesCountAgain):
    """So is one that landed long after."""

    caught_by = BudgetOutages.test_a_write_that_lands_long_after_is_counted_once


class LanesHaveNoNumbers(EntryFault):
    """A lane that charged once has charged for good."""

    caught_by = BudgetCompletion.test_the_next_number_of_a_lane_counts

    @classmethod
    def stands_in(cls, entry: LineEntry, record: BudgetRecord) -> bool:
        return any(lane in record.lanes for lane in entry.lanes)


class WorkersChargeInTheirTurnsLane(BudgetSaboteur):
    """A worker's numbers are taken for its turn's."""

    caught_by = BudgetCompletion.test_lanes_do_not_touch_each_other

    async def _counted(self, spend: Spend, ceilings: ByScope, windows: Calendar, check: Check) -> Verdict:
        turn = replaced(spend, lane=spend.lane.partition("/")[0])
        return await super()._counted(turn, ceilings, windows, check)


class LanesKnowTheirLastNumberAlone(EntryFault):
    """An earlier charge of a lane that went on is counted again."""

    caught_by = BudgetCompletion.test_an_earlier_number_of_a_lane_that_went_on_is_not_counted_again

    @classmethod
    def stands_in(cls, entry: LineEntry, record: BudgetRecord) -> bool:
        if not isinstance(entry, Share):
            return entry.stands_in(record)
        lane = record.lanes.get(entry.spend.lane)
        return lane is not None and lane.number == entry.spend.number


class TheCompanysRecordSpeaksForBoth(BudgetSaboteur):
    """What the company's record has, the seat's is taken to have too."""

    caught_by = BudgetCompletion.test_a_successor_counts_in_the_record_that_has_it_not

    async def _counted(self, spend: Spend, ceilings: ByScope, windows: Calendar, check: Check) -> Verdict:
        record = await self.spent(COMPANY_SCOPE, windows())
        known = landed(record, spend.lane, spend.number) is not None
        return await super()._counted(
            spend, {COMPANY_SCOPE: ceilings[COMPANY_SCOPE]} if known else ceilings, windows, check
        )


class CompletionsCountWhereTheyBegan(EntryFault):
    """The second record counts in the windows of the first one's write."""

    caught_by = BudgetCompletion.test_a_completion_counts_in_the_windows_of_its_write
    began: ClassVar[dict[tuple[str, int], Windows]] = {}

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        spend = share.spend
        windows = cls.began.setdefault((spend.lane, spend.number), share.charge.windows())
        return counted(record, windows, spend.tokens, lane=spend.lane, number=spend.number, ceilings=share.ceilings)


class WindowsAreThoseOfTheCall(BudgetSaboteur):
    """A charge that waits counts in the windows in which it began to."""

    caught_by = BudgetCompletion.test_a_charge_that_waited_over_a_boundary_counts_behind_it

    async def _counted(self, spend: Spend, ceilings: ByScope, windows: Calendar, check: Check) -> Verdict:
        now = windows()
        return await super()._counted(spend, ceilings, lambda: now, check)


class LanesGoWithTheirWindow(EntryFault):
    """A window that turns over takes the lanes along."""

    caught_by = BudgetCompletion.test_a_roll_leaves_the_lanes_alone

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        after = share.applied(record)
        if record.day.label == after.day.label:
            return after
        return replace(after, lanes={share.spend.lane: after.lanes[share.spend.lane]})


class TurnsAreNotForgotten(BudgetSaboteur):
    """The lanes of turns that are over stay."""

    caught_by = BudgetLaneEnds.test_a_turns_lanes_go_ten_minutes_after_its_end_with_a_write

    def forget_turn(self, turn_id: str, agent_id: str) -> None:
        pass


class _Unforgetting(BudgetLine):
    def turns_ended(self) -> frozenset[str]:
        return frozenset()


class ClosingLeavesItsTurnsLanes(BudgetSaboteur):
    """The lanes of turns that ended shortly before stay until they are old."""

    caught_by = BudgetLaneEnds.test_a_process_that_closes_takes_the_lanes_of_its_turns_along
    line_kind = _Unforgetting


class LanesThatAreWaitedForGoToo(EntryFault):
    """A turn's lanes go though a charge of it is not decided."""

    caught_by = BudgetLaneEnds.test_a_lane_that_waits_to_be_decided_stays

    @classmethod
    def lanes(cls, entry: LineEntry) -> Collection[str]:
        return ()


class LanesStayForEver(EntryFault):
    """No lane is ever too old."""

    caught_by = BudgetLaneEnds.test_a_lane_goes_that_nobody_charged_for_more_than_eight_days

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        after = share.applied(record)
        return replace(after, lanes={**record.lanes, **after.lanes})


class TheCompanysLanesAloneAreRemoved(BudgetSaboteur):
    """The seats' records keep the lanes of what is over."""

    caught_by = BudgetLaneEnds.test_the_lanes_of_what_is_over_are_taken_from_every_record

    async def remove_lanes(self, is_over: Callable[[str], bool]) -> None:
        await LaneRemoval(is_over).made_in(self._line(COMPANY_SCOPE))


BUDGET_LANE_FAULTS: tuple[type[BudgetSaboteur], ...] = (
    ChargesCountAgain,
    WhatLandedUnheardCountsAgain,
    WhatLandsLateCountsAgain,
    LanesHaveNoNumbers,
    WorkersChargeInTheirTurnsLane,
    LanesKnowTheirLastNumberAlone,
    TheCompanysRecordSpeaksForBoth,
    CompletionsCountWhereTheyBegan,
    WindowsAreThoseOfTheCall,
    LanesGoWithTheirWindow,
    TurnsAreNotForgotten,
    ClosingLeavesItsTurnsLanes,
    LanesThatAreWaitedForGoToo,
    LanesStayForEver,
    TheCompanysLanesAloneAreRemoved,
)
