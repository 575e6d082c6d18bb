"""What a turn, or a phase of it, has cost so far. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["NO_COST", "Cost"]

_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class Cost:
    """The sum over replies, in US dollars; ``known`` is false once the price of one of them is not known."""

    usd: float = 0.0
    replies: int = 0
    known: bool = True

    def plus(self, cost_usd: float | None) -> Cost:
        """With one more reply, of unknown price where that is ``None``."""
        return Cost(self.usd + (cost_usd or 0.0), self.replies + 1, self.known and cost_usd is not None)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.usd + other.usd, self.replies + other.replies, self.known and other.known)

    @property
    def said(self) -> float | None:
        """The sum as it is told: ``None`` where it is not known, or where nothing was asked for."""
        return round(self.usd, _DIGITS) if self.known and self.replies else None


NO_COST: Final = Cost()
