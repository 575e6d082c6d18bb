"""``submit_work``: the call that ends an execute phase and says what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, cast

from crewlet.base import limits
from crewlet.tools import CallContext, ToolResult, ToolRow

__all__ = ["SUBMIT_WORK", "SubmitWork", "WorkOutcome", "WorkSubmission"]

SUBMIT_WORK: Final = "submit_work"


class WorkOutcome(StrEnum):
    """What came of the work. ``INCOMPLETE`` is written by the engine alone, for a phase that never submitted."""

    DELIVERED = "delivered"
    NO_ACTION = "no_action"
    BLOCKED = "blocked"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSubmission:
    """One execute phase's result; ``deliveries`` names the tools that carried it."""

    outcome: WorkOutcome
    summary: str
    deliveries: tuple[str, ...] = ()
    evidence: str = ""
    open_questions: tuple[str, ...] = ()


_ROW: Final = ToolRow(
    name=SUBMIT_WORK,
    description=(
        "End your work on this task and say what came of it. Call it once, last, when nothing is left to do: your turn "
        "ends with it. `summary` is what the asker reads when the engine returns your answer, so write the whole "
        "answer there, addressed to them."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "outcome": {
                "type": "string",
                "enum": ["delivered", "no_action", "blocked"],
                "description": (
                    "delivered: the task is done. no_action: nothing had to be done. blocked: you cannot go on."
                ),
            },
            "summary": {"type": "string", "description": "The answer or result, complete, for the one who asked."},
            "deliveries": {
                "type": "array",
                "items": {"type": "string"},
                "description": (
                    "Names of the tools whose calls brought the result to the one who asked. Each is checked."
                ),
            },
            "evidence": {
                "type": "string",
                "description": "What you tried and what stopped you. Required when the outcome is blocked.",
            },
            "open_questions": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["outcome", "summary"],
    },
)


class SubmitWork:
    """The tool of one execute phase; keeps the submission that ended it.

    ``refuted`` says what of a submission the turn's record does not bear out. It sends
    ``limits.CLAIM_REFUSALS_MAX`` of them back; the next is taken as it is, and whoever reads it judges it.
    """

    def __init__(self, refuted: Callable[[WorkSubmission], str] = lambda _: "") -> None:
        self.submission: WorkSubmission | None = None
        self._refuted = refuted
        self._refused = 0

    @property
    def row(self) -> ToolRow:
        """How the model is told of it."""
        return _ROW

    @property
    def ended(self) -> bool:
        """Whether the phase was submitted."""
        return self.submission is not None

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """Take the submission, or say what is missing from it. The arguments already fit the schema."""
        given = cast("Mapping[str, Any]", arguments)
        submission = WorkSubmission(
            outcome=WorkOutcome(given["outcome"]),
            summary=given["summary"].strip(),
            deliveries=tuple(given.get("deliveries", ())),
            evidence=given.get("evidence", "").strip(),
            open_questions=tuple(given.get("open_questions", ())),
        )
        problem = _problem(submission)
        if problem:
            return ToolResult(problem, is_error=True)
        claim = self._refuted(submission)
        if claim and self._refused < limits.CLAIM_REFUSALS_MAX:
            self._refused += 1
            return ToolResult(f"not submitted: {claim}", is_error=True)
        self.submission = submission
        return ToolResult("Submitted. Your work on this task ends here.")


def _problem(submission: WorkSubmission) -> str:
    if not submission.summary:
        return "`summary` is empty: write what the one who asked should read"
    if submission.outcome is WorkOutcome.BLOCKED and not submission.evidence:
        return "`evidence` is missing: an outcome of blocked needs what you tried and what stopped you"
    return ""
