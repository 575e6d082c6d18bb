"""What earlier iterations of a turn did, kept short enough to be told again."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from crewlet.base import limits
from crewlet.events.types import ToolExecution
from crewlet.turns.builtin_submit_review import SUBMIT_REVIEW, Review
from crewlet.turns.builtin_submit_work import SUBMIT_WORK, WorkSubmission

__all__ = ["PriorIteration", "render_calls", "render_prior", "render_submission"]

_FINISHERS = frozenset({SUBMIT_WORK, SUBMIT_REVIEW})


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorIteration:
    """One closed iteration that was sent back: by the review, or by the engine's own check of what was claimed.

    ``reads`` are the tools that only look, of whose calls the latest alone are told again.
    """

    iteration: int
    calls: tuple[ToolExecution, ...]
    submission: WorkSubmission
    review: Review | None = None
    engine_notes: str = ""
    reads: frozenset[str] = frozenset()


def render_prior(prior: Sequence[PriorIteration]) -> str:
    """The closed iterations for the next one: what was called, what came of it, what the review wants changed."""
    parts: list[str] = []
    for each in prior:
        parts.append(f"### Iteration {each.iteration}")
        parts.append(render_calls(each.calls, with_results=False, reads=each.reads))
        parts.append(render_submission(each.submission, result_max_chars=limits.PRIOR_ARTIFACT_MAX_CHARS))
        if each.review is not None and each.review.completed_work:
            parts.append(f"Already done, not to be done again: {each.review.completed_work}")
        if each.review is not None and each.review.notes:
            parts.append(f"The review says: {each.review.notes}")
        if each.engine_notes:
            parts.append(f"The engine sent it back: {each.engine_notes}")
    return "\n\n".join(part for part in parts if part)


def render_calls(calls: Sequence[ToolExecution], *, with_results: bool, reads: Container[str] = ()) -> str:
    """One line a call, the latest of many, arguments and results cut; the calls that ended phases are left out."""
    told = [call for call in calls if call.name not in _FINISHERS]
    if not told:
        return "No tool was called."
    kept = _kept(told, reads)
    left_out = len(told) - len(kept)
    lines = [f"({left_out} earlier calls are left out)"] if left_out > 0 else []
    for call in kept:
        state = "failed" if call.error else "ok"
        lines.append(f"- {call.name}({_elided(call.arguments)}): {state}")
        if with_results or call.error:
            lines.append(f"  {_cut(call.result, limits.PRIOR_CALL_MAX_CHARS)}")
    return "\n".join(["Tool calls:", *lines])


def render_submission(submission: WorkSubmission, *, result_max_chars: int = 0) -> str:
    """A submission as its reviewer reads it, whole; or the end of its result alone, for a later iteration."""
    lines = [f"Outcome: {submission.outcome}"]
    if submission.deliveries:
        lines.append(f"Delivered through: {', '.join(submission.deliveries)}")
    if submission.evidence:
        lines.append(f"Evidence: {submission.evidence}")
    if submission.open_questions:
        lines.append("Open questions: " + "; ".join(submission.open_questions))
    result = _tail(submission.summary, result_max_chars) if result_max_chars else submission.summary
    lines.append(f"Result:\n{result}")
    return "\n".join(lines)


def _kept(calls: Sequence[ToolExecution], reads: Container[str]) -> Sequence[ToolExecution]:
    """The latest calls, of those that only look no more than a dozen."""
    looks = [place for place, call in enumerate(calls) if call.name in reads]
    dropped = frozenset(looks[: -limits.PRIOR_READS_MAX])
    return [call for place, call in enumerate(calls) if place not in dropped][-limits.PRIOR_CALLS_MAX :]


def _elided(arguments: Mapping[str, object]) -> str:
    shown = (f"{name}={_cut(_text(value), limits.PRIOR_VALUE_MAX_CHARS)}" for name, value in arguments.items())
    return _cut(", ".join(shown), limits.PRIOR_CALL_MAX_CHARS)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _tail(text: str, most: int) -> str:
    return text if len(text) <= most else f"…{text[-most:]}"
