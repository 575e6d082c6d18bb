"""What becomes of the turn that a predecessor left in a seat's journal. Pure (D11)."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, auto

from crewlet.base import limits
from crewlet.inbox.journal_state import LastTurn

__all__ = ["Fate", "fate_of"]


class Fate(Enum):
    """What the new holder does with the last turn on record."""

    NOTHING = auto()
    FINISH = auto()
    """It had ended: what its end names is recorded as worked, if it is not yet."""
    WORKED = auto()
    """A constituent is worked by another turn: this one ends, and says nothing of the rest."""
    STOP = auto()
    """A person stopped it meanwhile: it ends, and its events count as worked."""
    GIVE_UP = auto()
    """Taken over too often without a new reply, after a call that may have reached outside: it ends as worked."""
    LEAVE = auto()
    """Taken over too often, with nothing outside: it ends, and its events come back as any other."""
    RESUME = auto()


def fate_of(turn: LastTurn | None, *, worked: Collection[str], event_ids: Collection[str], stopped: bool) -> Fate:
    """Decide. ``worked``: the ids that the ledger has; ``stopped``: a pause that stops turns came since the opening."""
    if turn is None:
        return Fate.NOTHING
    if turn.ended is not None:
        return Fate.FINISH
    if any(each in worked for each in event_ids):
        return Fate.WORKED
    if stopped:
        return Fate.STOP
    # This take-over is one of them; it is allowed to go on ``journal_resumes_max`` times.
    if turn.idle_resumes > limits.JOURNAL_RESUMES_MAX:
        return Fate.GIVE_UP if turn.may_have_reached_outside else Fate.LEAVE
    return Fate.RESUME
