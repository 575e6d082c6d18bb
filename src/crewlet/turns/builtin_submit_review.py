"""``submit_review``: the call that ends a review phase and decides over the work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, cast

from crewlet.tools import CallContext, ToolResult, ToolRow

__all__ = ["SUBMIT_REVIEW", "Review", "ReviewDecision", "SubmitReview"]

SUBMIT_REVIEW: Final = "submit_review"


class ReviewDecision(StrEnum):
    """What the reviewer decided."""

    DONE = "done"
    SELF_ITERATE = "self_iterate"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One review. An empty ``final_artifact`` leaves the executor's own summary standing."""

    decision: ReviewDecision
    notes: str = ""
    completed_work: str = ""
    final_artifact: str = ""


_ROW: Final = ToolRow(
    name=SUBMIT_REVIEW,
    description="Decide over the work you were shown. Call it once; the review ends with it.",
    input_schema={
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "enum": ["done", "self_iterate", "failed"],
                "description": (
                    "done: the result answers the task. self_iterate: send it back once more, with notes. failed: it "
                    "cannot be brought to an answer."
                ),
            },
            "notes": {
                "type": "string",
                "description": "What to change, or why it failed. Required unless the decision is done.",
            },
            "completed_work": {
                "type": "string",
                "description": "What is already done and must not be done again.",
            },
            "final_artifact": {
                "type": "string",
                "description": "The answer as it should go out. Leave it out to send the summary as it stands.",
            },
        },
        "required": ["decision"],
    },
)


class SubmitReview:
    """The tool of one review phase; keeps the review that ended it."""

    def __init__(self) -> None:
        self.review: Review | None = None

    @property
    def row(self) -> ToolRow:
        """How the model is told of it."""
        return _ROW

    @property
    def ended(self) -> bool:
        """Whether the review was submitted."""
        return self.review is not None

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """Take the review, or say what is missing from it. The arguments already fit the schema."""
        given = cast("Mapping[str, Any]", arguments)
        review = Review(
            decision=ReviewDecision(given["decision"]),
            notes=given.get("notes", "").strip(),
            completed_work=given.get("completed_work", "").strip(),
            final_artifact=given.get("final_artifact", "").strip(),
        )
        if review.decision is not ReviewDecision.DONE and not review.notes:
            return ToolResult(f"`notes` is missing: a decision of {review.decision} needs its reason", is_error=True)
        self.review = review
        return ToolResult("The review is recorded.")
