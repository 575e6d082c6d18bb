"""The tool with which an agent asks a colleague; its turn ends there, and the answer wakes the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from crewlet.a2a.service import A2aService
from crewlet.coordination import ChannelStatus
from crewlet.tools import Annotations, CallContext, Hint, ToolResult, ToolRow

__all__ = ["AskTool", "Colleagues"]

_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "handle": {"type": "string", "description": "The handle of the agent colleague to ask."},
        "brief": {
            "type": "string",
            "description": "The whole question with all the colleague needs to answer it; nothing else is passed on.",
        },
    },
    "required": ["handle", "brief"],
    "additionalProperties": False,
}
_ROW: Final = ToolRow(
    name="a2a_ask",
    description=(
        "Ask another agent one question. Your turn ends after this call; the colleague's answer wakes you with your"
        " task and the answer. Ask one colleague at a time. People cannot be asked this way."
    ),
    input_schema=_SCHEMA,
    annotations=Annotations(read_only=Hint.NO, idempotent=Hint.YES, open_world=Hint.YES),
)


class Colleagues(Protocol):
    """Who can be asked, in the company current at the time of the call."""

    def agents(self) -> tuple[str, ...]:
        """The handles of all agent seats."""
        ...

    def is_human(self, handle: str) -> bool:
        """Whether the handle is a person's."""
        ...


class AskTool:
    """``a2a_ask``."""

    def __init__(self, service: A2aService, colleagues: Colleagues) -> None:
        self._service = service
        self._colleagues = colleagues

    @property
    def row(self) -> ToolRow:
        """How it is described; it counts as reaching outside, since it wakes a colleague."""
        return _ROW

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """Ask. A colleague who cannot be asked is an error the model can read; ``Unavailable`` travels on."""
        handle, brief = str(arguments.get("handle", "")).strip(), str(arguments.get("brief", "")).strip()
        refusal = self._refusal(handle, brief, context)
        if refusal:
            return ToolResult(refusal, is_error=True)
        channel = await self._service.ask(context, handle, brief)
        if channel.status is ChannelStatus.CLOSED and not channel.answer_event_id:
            # The turn was away for longer than an ask is kept open: to wait for its answer would be to wait for ever.
            return ToolResult(f"{handle} was asked this and has not answered; the question is closed.", is_error=True)
        text = f"{handle} has been asked. Your turn ends now; the answer will wake you with this task."
        return ToolResult(text, ends_turn=True, ask=channel.channel_id)

    def _refusal(self, handle: str, brief: str, context: CallContext) -> str:
        if not brief:
            return "brief: say what you want to know; an empty question cannot be answered"
        if handle == context.handle:
            return "handle: that is you; ask a colleague, or answer yourself"
        if self._colleagues.is_human(handle):
            return f"handle: {handle} is a person and cannot be asked this way; write where the team works"
        if handle not in self._colleagues.agents():
            others = ", ".join(each for each in self._colleagues.agents() if each != context.handle)
            return f"handle: nobody has the handle {handle!r}; you can ask: {others or 'nobody'}"
        return ""
