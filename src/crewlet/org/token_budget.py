"""The ceilings of one scope: of the company, or of one seat."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TokenBudget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """Tokens by calendar window on the company's clock; ``None`` has no ceiling."""

    day: int | None = None
    week: int | None = None
    month: int | None = None
