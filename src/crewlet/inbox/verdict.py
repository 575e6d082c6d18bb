"""What becomes of a delivery once its turn has ended. Pure (S1, "A turn that broke halfway")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from crewlet.inbox.contract import TurnOutcome

__all__ = ["SPENT", "Verdict", "verdict_of"]

SPENT: Final = "its deliveries are spent; the message is a dead letter now"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``record``: write the ledger and acknowledge, else the delivery goes back. ``abandoned``: why it ends."""

    record: bool
    abandoned: str = ""


def verdict_of(outcome: TurnOutcome, *, headroom: int) -> Verdict:
    """Whether the trigger is done with, given how its turn ended and how many deliveries it has left.

    A finished turn is recorded. A broken one comes back, unless its own record proves that a call reached outside:
    then repeating it would do more harm than losing the rest, and giving up is said (S-123, S-124). The last
    delivery of a broken one is given up too, since the queue dead-letters it.
    """
    if outcome.finished:
        abandoned = "the model declined" if outcome.error_kind == "refusal" else ""
        return Verdict(record=True, abandoned=abandoned)
    if outcome.reached_outside:
        return Verdict(record=True, abandoned="the turn broke after a call had reached outside")
    if headroom == 0:
        return Verdict(record=False, abandoned=SPENT)
    return Verdict(record=False)
