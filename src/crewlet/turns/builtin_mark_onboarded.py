"""``mark_onboarded``: the call that ends an onboarding and puts on record that it is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from crewlet.tools import CallContext, ToolResult, ToolRow

__all__ = ["MARK_ONBOARDED", "MarkOnboarded"]

MARK_ONBOARDED: Final = "mark_onboarded"

_ROW: Final = ToolRow(
    name=MARK_ONBOARDED,
    description="Say that you know your way at this place in the company. Call it once, last: your work begins then.",
    input_schema={
        "type": "object",
        "properties": {
            "notes": {
                "type": "string",
                "description": "What you found out, in a few sentences; kept in the record of this phase.",
            },
        },
    },
)


class MarkOnboarded:
    """The tool of one onboarding. ``mark`` puts the mark on record, and says whether it could.

    The phase ends in either case: a model that has done its part is not asked again over an outage of ours.
    """

    def __init__(self, mark: Callable[[], Awaitable[bool]]) -> None:
        self.is_marked = False
        self.notes = ""
        self._mark = mark
        self._ended = False

    @property
    def row(self) -> ToolRow:
        """How the model is told of it."""
        return _ROW

    @property
    def ended(self) -> bool:
        """Whether it was called."""
        return self._ended

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """Put the mark on record; one that could not be is said."""
        self.notes = str(arguments.get("notes", "")).strip()
        self.is_marked = await self._mark()
        self._ended = True
        if not self.is_marked:
            return ToolResult("That could not be put on record now; your work begins all the same.", is_error=True)
        return ToolResult("You are onboarded. Your work begins now.")
