"""Token budgets with one planted fault: each saboteur changes one thing about what a line does with an entry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import ClassVar

from crewlet.base.errors import Fenced, Unavailable
from crewlet.coordination import BudgetRecord, Budgets
from crewlet.coordination.records.budget_charge import Share
from crewlet.coordination.records.budget_line import BudgetLine, LineEntry

__all__ = ["BudgetSaboteur", "EntryFault"]


class BudgetSaboteur(Budgets):
    """Whatever a saboteur does not define is as it should be. ``caught_by`` is the promise that must find it out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class EntryFault(BudgetSaboteur):
    """A saboteur between a line and its entries; each verb is what the line hears of an entry."""

    @classmethod
    def applied(cls, entry: LineEntry, record: BudgetRecord) -> BudgetRecord:
        """The record with the change made."""
        return cls.counted(entry, record) if isinstance(entry, Share) else entry.applied(record)

    @classmethod
    def counted(cls, share: Share, record: BudgetRecord) -> BudgetRecord:
        """The record with a charge made."""
        return share.applied(record)

    @classmethod
    def stands_in(cls, entry: LineEntry, record: BudgetRecord) -> bool:
        """Whether it was made before."""
        return entry.stands_in(record)

    @classmethod
    def reads_first(cls, entry: LineEntry) -> bool:
        """Whether it is decided by a record that was just read."""
        return entry.reads_first

    @classmethod
    def lanes(cls, entry: LineEntry) -> Collection[str]:
        """What it is known by."""
        return entry.lanes

    @classmethod
    def check(cls, entry: LineEntry) -> None:
        """The fence."""
        entry.check()

    @classmethod
    def held_up(cls, entry: LineEntry, error: Unavailable) -> bool:
        """Whether it stays."""
        return entry.held_up(error)

    def __init_subclass__(cls) -> None:
        """A line whose entries pass through this saboteur."""
        super().__init_subclass__()
        cls.line_kind = type("SpoiledLine", (_SpoiledLine,), {"fault": cls})


class _SpoiledLine(BudgetLine):
    fault: ClassVar[type[EntryFault]]

    def join(self, entry: LineEntry) -> None:
        super().join(_SpoiledEntry(entry, self.fault))


class _SpoiledEntry:
    def __init__(self, entry: LineEntry, fault: type[EntryFault]) -> None:
        self._entry = entry
        self._fault = fault

    @property
    def lanes(self) -> Collection[str]:
        return self._fault.lanes(self._entry)

    @property
    def reads_first(self) -> bool:
        return self._fault.reads_first(self._entry)

    def stands_in(self, record: BudgetRecord) -> bool:
        return self._fault.stands_in(self._entry, record)

    def check(self) -> None:
        self._fault.check(self._entry)

    def applied(self, record: BudgetRecord) -> BudgetRecord:
        return self._fault.applied(self._entry, record)

    def decided(self, record: BudgetRecord) -> None:
        self._entry.decided(record)

    def held_up(self, error: Unavailable) -> bool:
        return self._fault.held_up(self._entry, error)

    def dropped(self, error: Fenced | Unavailable) -> None:
        self._entry.dropped(error)
