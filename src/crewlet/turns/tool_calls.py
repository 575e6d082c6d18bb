"""One tool call of a round: from what the model asked to exactly one result, whatever happens on the way."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import structlog

from crewlet.base.errors import CrewletError, Fenced, Unavailable
from crewlet.llm import ToolCall
from crewlet.tools import CallContext, Tool, ToolResult, ToolRow, reaches_outside
from crewlet.turns.arguments import argument_problems
from crewlet.turns.toolbox import Toolbox

__all__ = ["call_tool", "proves_outside", "recorded_arguments", "refusal_of"]

_log = structlog.get_logger(__name__)


def refusal_of(call: ToolCall, toolbox: Toolbox, *, waiting_for: str) -> str:
    """Why a call is not made at all, said to the model; empty when it may be made. Pure.

    ``waiting_for`` is the tool whose call this turn waits for already: a turn opens one ask.
    """
    tool = toolbox.find(call.name)
    if tool is None:
        return toolbox.why_unknown(call.name)
    if call.arguments is None:
        return f"the arguments of `{call.name}` are not a JSON object: call it again with one"
    if toolbox.finisher.ended:
        return f"not run: `{toolbox.finisher.row.name}` before it ended this phase"
    if call.name == waiting_for:
        # One open ask a turn: the turn that its answer wakes could not tell whether another is still to come.
        return f"not run: this turn waits for a colleague already; call `{call.name}` again after the answer"
    problems = argument_problems(tool.row.input_schema, call.arguments)
    return f"`{call.name}` was not run. {'; '.join(problems)}" if problems else ""


def recorded_arguments(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as the record keeps them; what could not be parsed is kept as it came."""
    return {"unparsed": call.raw} if call.arguments is None else cast("dict[str, Any]", call.arguments)


async def call_tool(tool: Tool, call: ToolCall, context: CallContext, *, backstop_s: float) -> ToolResult:
    """Make the call. A failure is a result that the model reads; what is not known to have failed says so.

    Raises ``Fenced``, and ``Unavailable`` from a built-in: such a tool names what it writes after the work, so the
    turn may break and run again. A tool server's silence breaks nothing, since its calls cannot be repeated.
    """
    name = call.name
    try:
        async with asyncio.timeout(backstop_s):
            return await tool.call(call.arguments or {}, context)
    except TimeoutError:
        return _unknown(f"`{name}` did not answer in time; it may have had its effect all the same")
    except Fenced:
        raise
    except Unavailable as unavailable:
        if not tool.row.is_mcp:
            raise
        return _unknown(f"`{name}` did not answer: {unavailable}; it may have had its effect all the same")
    except CrewletError as failure:
        return ToolResult(f"`{name}` failed: {failure}", is_error=True)
    except Exception as failure:  # noqa: BLE001 - supervisor: a fault in one tool costs its call and not the turn
        _log.exception("tool_call_panicked", seat=context.handle, turn=context.turn_id, tool=name)
        what = f"{type(failure).__name__}: {failure}"
        return _unknown(f"`{name}` failed: {what}; it may have had its effect all the same")


def proves_outside(row: ToolRow, result: ToolResult) -> bool:
    """Whether a call may have left the engine for good: it succeeded, or nobody knows that it did not. Pure (S1)."""
    return reaches_outside(row) and (not result.is_error or result.unknown)


def _unknown(text: str) -> ToolResult:
    return ToolResult(text, is_error=True, unknown=True)
