"""How a turn can end, and which ends bring its trigger back. Pure (S1, "A turn that broke halfway")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from crewlet.base.errors import Fenced, StoppedByPerson, Unavailable
from crewlet.events.types import Refusal
from crewlet.inbox import Decision
from crewlet.llm import ChainExhausted, FailureKind, ModelFailure, StopReason
from crewlet.turns.meter import BudgetExhausted
from crewlet.turns.phase import PhaseBroke
from crewlet.turns.phase_record import PhaseClosing
from crewlet.turns.prior_work import PriorIteration

__all__ = [
    "BUDGET_EXHAUSTED",
    "LLM_UNAVAILABLE",
    "Breach",
    "Breakage",
    "TurnEnd",
    "broken_by",
    "closing_of",
    "ended_by_guard",
    "guard_after",
]

Breakage = PhaseBroke | ChainExhausted | ModelFailure | BudgetExhausted | Unavailable | Fenced
"""What may break a turn on purpose; anything else that breaks it is a fault of the engine."""

LLM_UNAVAILABLE: Final = "llm_unavailable"
"""The error kind of a turn whose every model failed to answer."""

BUDGET_EXHAUSTED: Final = "budget_exhausted"
"""The error kind of a turn that was refused a token."""

_HOPELESS: Final = frozenset({FailureKind.BAD_REQUEST, FailureKind.CONTEXT_EXCEEDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """One end of a turn. ``deferred``: the seat moved, and its new holder is entitled to the trigger."""

    decision: Decision
    finished: bool
    artifact: str = ""
    error: str = ""
    error_kind: str = ""
    phase_error_kind: str = ""
    refusal: Refusal | None = None
    asks: tuple[str, ...] = ()
    deferred: bool = False

    @property
    def failed(self) -> bool:
        """Whether the turn counts as failed; a turn that moved or was stopped by a person does not."""
        return self.decision is Decision.FAILED and not self.deferred


@dataclass(frozen=True, slots=True)
class Breach:
    """A guard that ended the turn."""

    kind: str
    detail: str


def guard_after(prior: Sequence[PriorIteration], *, max_iterations: int) -> Breach | None:
    """Whether another iteration is allowed after those that were sent back; a repeat is named before the count."""
    latest = prior[-1].submission.summary
    if any(each.submission.summary == latest for each in prior[:-1]):
        return Breach("stall", "two iterations that were sent back brought the same result")
    if len(prior) >= max_iterations:
        return Breach("max_iter", f"the review sent the work back {len(prior)} times, which is the limit")
    return None


def ended_by_guard(breach: Breach, *, artifact: str = "") -> TurnEnd:
    """A guard's end is the turn's own: run again, it would come to the same."""
    return TurnEnd(
        decision=Decision.FAILED, finished=True, artifact=artifact, error=breach.detail, error_kind=breach.kind
    )


def broken_by(cause: Breakage) -> TurnEnd:
    """The end that ``cause`` makes of a turn. Only a refusal and a person's stop finish it; the rest may come back."""
    error = str(cause)
    match cause:
        case StoppedByPerson():
            return TurnEnd(decision=Decision.STOPPED, finished=True, error=error)
        case Fenced():
            kind = "fenced"
            return TurnEnd(decision=Decision.FAILED, finished=False, error=error, error_kind=kind, deferred=True)
        case PhaseBroke():
            kind = str(cause.stop_reason)
            declined = cause.stop_reason is StopReason.REFUSAL
            return TurnEnd(
                decision=Decision.FAILED, finished=declined, error=error, error_kind=kind, refusal=cause.refusal
            )
        case ChainExhausted():
            return _unanswered(error, cause.last, LLM_UNAVAILABLE)
        case ModelFailure():
            kind = str(cause.kind) if cause.kind in _HOPELESS else LLM_UNAVAILABLE
            return _unanswered(error, cause, kind)
        case BudgetExhausted() | Unavailable():
            kind = BUDGET_EXHAUSTED if isinstance(cause, BudgetExhausted) else "unavailable"
            return TurnEnd(decision=Decision.FAILED, finished=False, error=error, error_kind=kind)


def closing_of(end: TurnEnd) -> PhaseClosing:
    """What the record of the phase that was running says of this end."""
    return PhaseClosing(
        failed=end.failed,
        error=end.error,
        error_kind=end.phase_error_kind or end.error_kind,
        refusal=end.refusal,
    )


def _unanswered(error: str, last: ModelFailure, kind: str) -> TurnEnd:
    return TurnEnd(
        decision=Decision.FAILED, finished=False, error=error, error_kind=kind, phase_error_kind=str(last.kind)
    )
