"""The rules that every moment of a simulated company's day is held to; each finding names its rule."""

from __future__ import annotations

from typing import Literal

from crewlet.testing import simulated

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
    "notes",
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
    "notes": "a note that was taken is read by a round, or said to have come too late; said once",
    "whole": "no loop, no turn and no delivery fails for a fault of the engine's own",
    "rest": "a company that is well works off its mail in time",
}

Finding = simulated.Finding[Rule]
"""A rule that was broken."""
Findings = simulated.Findings[Rule]
"""What was found."""
