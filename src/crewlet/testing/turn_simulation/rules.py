"""The rules that every moment of a simulated company's day is held to; each finding names its rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["RULES", "Finding", "Findings", "Rule"]

Rule = Literal[
    "ends",
    "said",
    "ledger",
    "effects",
    "counters",
    "one turn",
    "transcript",
    "digest",
    "answers",
    "asks",
    "whole",
    "rest",
]

RULES: dict[Rule, str] = {
    "ends": "each trigger ends answered, skipped with a reason, or as a dead letter",
    "said": "what a seat gives up, it says",
    "ledger": "what was acknowledged is in the ledger, by its own id or by its chat's key",
    "effects": "a call has its effect once, an idempotent one once in each process; for a trigger acts one turn alone",
    "counters": "the counters equal the sum of the replies on record",
    "one turn": "a seat runs one turn at a time, and acts under no lower epoch once it has acted under a higher",
    "transcript": "what a model is shown answers each of its calls once, before anything else is said",
    "digest": "a merged trigger holds each of its events once, and says each of them",
    "answers": "what is owed an answer is answered by one turn at most",
    "asks": "an ask that was worked is answered",
    "whole": "no loop, no turn and no delivery fails for a fault of the engine's own",
    "rest": "a company that is well works off its mail in time",
}
_FINDINGS_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that was broken, how, and after how many seconds."""

    rule: Rule
    what: str
    at_s: float


class Findings:
    """What was found: each thing once, the first few."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._seen: set[tuple[Rule, str]] = set()
        self.all: list[Finding] = []

    def add(self, rule: Rule, what: str) -> None:
        """``rule`` was broken."""
        if (rule, what) not in self._seen and len(self.all) < _FINDINGS_MAX:
            self._seen.add((rule, what))
            self.all.append(Finding(rule, what, round(self._now_s(), 3)))
