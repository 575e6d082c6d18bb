"""``submit_result``: the call that ends a worker's task and hands its result back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crewlet.tools import CallContext, ToolResult, ToolRow

__all__ = ["SUBMIT_RESULT", "SubmitResult"]

SUBMIT_RESULT: Final = "submit_result"


class SubmitResult:
    """The tool of one worker; ``output`` is the schema of what it has to hand back."""

    def __init__(self, output: Mapping[str, object]) -> None:
        self.result: Mapping[str, object] | None = None
        self._row = ToolRow(
            name=SUBMIT_RESULT,
            description="Hand your result back and end your task. Call it once, last; nothing else you say is read.",
            input_schema={"type": "object", "additionalProperties": False, **output},
        )

    @property
    def row(self) -> ToolRow:
        """How the model is told of it."""
        return self._row

    @property
    def ended(self) -> bool:
        """Whether the result was handed back."""
        return self.result is not None

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """Take the result. The arguments already fit the schema."""
        self.result = arguments
        return ToolResult("The result is handed back.")
