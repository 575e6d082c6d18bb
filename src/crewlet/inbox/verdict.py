"""What becomes of a delivery once its turn has ended. Pure (S1, "A turn that broke halfway")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crewlet.inbox.contract import Decision, Trigger, TurnOutcome

__all__ = ["PANICKED", "SPENT", "Verdict", "ids_worked", "verdict_of"]

SPENT: Final = "its deliveries are spent; the message is a dead letter now"
_BUDGET_EXHAUSTED: Final = "budget_exhausted"
PANICKED: Final = "unhandled_exception"
"""The kind of end that a defect of the engine makes of a turn."""
_ABANDONED: Final = {"refusal": "the model declined", PANICKED: "the engine failed in it"}
_ANSWERED: Final = frozenset({Decision.DONE, Decision.SKIPPED})


@dataclass(frozen=True, slots=True)
class Verdict:
    """``record``: write the ledger and acknowledge, else the delivery goes back. ``abandoned``: why it ends.

    ``parked``: it goes back for want of budget, and whoever parks the seat says so.
    """

    record: bool
    abandoned: str = ""
    parked: bool = False


def verdict_of(outcome: TurnOutcome, *, headroom: int) -> Verdict:
    """Whether the trigger is done with, given how its turn ended and how many deliveries it has left.

    A finished turn is recorded; what the model declined, or what a defect of ours ended, is given up with it, since a
    run again would only come to the same. A broken one comes back, unless its own record proves that a call reached
    outside: then repeating it would do more harm than losing the rest, and giving up is said (S-123, S-124). The
    last delivery of a broken one is given up too, since the queue dead-letters it.
    """
    if outcome.finished:
        return Verdict(record=True, abandoned=_ABANDONED.get(outcome.error_kind, ""))
    if outcome.reached_outside:
        return Verdict(record=True, abandoned="the turn broke after a call had reached outside")
    if outcome.error_kind == _BUDGET_EXHAUSTED:
        return Verdict(record=False, parked=True)
    if headroom == 0:
        return Verdict(record=False, abandoned=SPENT)
    return Verdict(record=False)


def ids_worked(trigger: Trigger, outcome: TurnOutcome) -> tuple[str, ...]:
    """What is recorded of a turn that is done with: all that woke it, never the digest that it was told (S-114).

    What waited in the thread that it was shown counts as answered by a turn that came to an answer, or to the end
    that none is called for; one that failed left it waiting (S-115).
    """
    own = tuple(event.id for event in trigger.events)
    answered = outcome.finished and outcome.decision in _ANSWERED
    return (*own, *outcome.shown_messages) if answered else own
