"""What is written to a budget record beside charges: the mark of a refusal, and the removal of lanes that are over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from crewlet.base.errors import CrewletError, Fenced, Unavailable
from crewlet.coordination.records.budget_charge import Refusal, refusals_of
from crewlet.coordination.records.budget_line import BudgetLine
from crewlet.coordination.records.budget_record import (
    BudgetRecord,
    Ceilings,
    as_found,
    refused,
    without_lanes,
    without_room,
)
from crewlet.coordination.records.budget_windows import Windows

__all__ = ["LaneRemoval", "RefusalMark"]


class _Upkeep:
    """A change that is made at once or not at all: an outage is its end, and whoever wants it asks again."""

    def __init__(self) -> None:
        self.lanes: Sequence[str] = ()
        self.reads_first = True
        self._told: asyncio.Future[BudgetRecord] = asyncio.get_running_loop().create_future()

    async def made_in(self, line: BudgetLine) -> BudgetRecord:
        """Wait in line; returns the record with the change made, which may be what stood. Raises ``Unavailable``."""
        line.join(self)
        return await self._told

    def stands_in(self, record: BudgetRecord) -> bool:
        """Never known before it is applied."""
        return False

    def check(self) -> None:
        """Nothing here belongs to one holder of a seat alone."""

    def applied(self, record: BudgetRecord) -> BudgetRecord:
        """The record with the change made."""
        raise NotImplementedError

    def decided(self, record: BudgetRecord) -> None:
        """The change stands."""
        if not self._told.done():
            self._told.set_result(record)

    def held_up(self, error: Unavailable) -> bool:
        """Give up."""
        self._tell(error)
        return False

    def dropped(self, error: Fenced | Unavailable) -> None:
        """Give up."""
        self._tell(error)

    def _tell(self, error: CrewletError) -> None:
        if not self._told.done():
            self._told.set_exception(error)


class RefusalMark(_Upkeep):
    """A call was turned away before it was made: every window without room for a single token says when (C-173)."""

    def __init__(self, windows: Windows, ceilings: Ceilings) -> None:
        super().__init__()
        self.windows = windows
        self.ceilings = ceilings

    def applied(self, record: BudgetRecord) -> BudgetRecord:
        """Judged by the counter as it stands, never by what the caller remembers."""
        return refused(record, self.windows, self.ceilings)

    def refusals(self, record: BudgetRecord) -> Sequence[Refusal]:
        """The windows that are marked."""
        found = as_found(record, self.windows)
        return refusals_of(found, without_room(found, self.ceilings), self.ceilings)


class LaneRemoval(_Upkeep):
    """The lanes of whoever will not charge again."""

    def __init__(self, is_over: Callable[[str], bool]) -> None:
        super().__init__()
        self.is_over = is_over

    def applied(self, record: BudgetRecord) -> BudgetRecord:
        """The record without them."""
        return without_lanes(record, self.is_over)
