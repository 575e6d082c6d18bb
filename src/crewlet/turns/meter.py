"""What counts a turn's tokens against the budgets of its seat and of the company."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from crewlet.base.errors import CrewletError
from crewlet.llm import Usage

__all__ = ["BudgetExhausted", "Meter", "NoMeter", "RefusedWindow", "Spent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedWindow:
    """The window that refuses: ``scope`` is ``org`` or ``agent:{id}``, ``period`` day, week or month.

    ``ceiling`` is ``None`` where it was lifted since, ``resets_at`` (UTC) where only a newer build knows the period.
    """

    scope: str
    period: str
    label: str
    spent: int
    ceiling: int | None
    resets_at: datetime | None = None

    def __str__(self) -> str:
        whose = "the company" if self.scope == "org" else self.scope
        of = "" if self.ceiling is None else f" of {self.ceiling}"
        until = "" if self.resets_at is None else f"; it turns over at {self.resets_at.isoformat()}"
        return f"the token budget of {whose} for the {self.period} {self.label} is spent: {self.spent}{of}{until}"


class BudgetExhausted(CrewletError):
    """A charge was refused, or a call would be: the turn ends here and asks no model any more (S0)."""

    def __init__(self, refused: tuple[RefusedWindow, ...]) -> None:
        self.refused = refused
        super().__init__(str(refused[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """One reply's tokens. ``lane`` and ``number`` make its charge known again: a turn (or a worker of it), from 1."""

    lane: str
    number: int
    usage: Usage
    provider_key: str
    model: str


class Meter(Protocol):
    """The budgets as one turn meets them; made for one seat."""

    async def admit(self) -> None:
        """Before a model is asked. Raises ``BudgetExhausted`` where no window has room for a single token.

        Records that refusal once a window and turn. A counter that cannot be read stops nothing here.
        """
        ...

    async def remaining(self) -> int | None:
        """The tokens that the fullest window has left; ``None`` where nothing limits them, or nobody can tell."""
        ...

    async def charge(self, spent: Spent, check: Callable[[], None]) -> None:
        """Count a reply that has arrived, company then seat, in the windows current now; ``check`` is the fence.

        Raises ``BudgetExhausted`` where it was refused (and counted), ``Unavailable`` where it could not be counted:
        an outage, never "out of budget". The same charge again is counted once.
        """
        ...


class NoMeter:
    """No budget at all."""

    async def admit(self) -> None:
        """Always."""

    async def remaining(self) -> int | None:
        """No limit."""
        return None

    async def charge(self, spent: Spent, check: Callable[[], None]) -> None:
        """Nothing is counted."""
