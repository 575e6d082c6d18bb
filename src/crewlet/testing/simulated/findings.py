"""What a simulation found: which of its rules was broken, how, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

__all__ = ["Finding", "Findings"]

_FINDINGS_MAX: Final = 50
_RuleT = TypeVar("_RuleT", bound=str)


@dataclass(frozen=True, slots=True)
class Finding(Generic[_RuleT]):
    """A rule that was broken, how, and after how many seconds."""

    rule: _RuleT
    what: str
    at_s: float


class Findings(Generic[_RuleT]):
    """What was found: each thing once, the first few."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._seen: set[tuple[_RuleT, str]] = set()
        self.all: list[Finding[_RuleT]] = []

    def add(self, rule: _RuleT, what: str) -> None:
        """``rule`` was broken."""
        if (rule, what) not in self._seen and len(self.all) < _FINDINGS_MAX:
            self._seen.add((rule, what))
            self.all.append(Finding(rule, what, round(self._now_s(), 3)))
