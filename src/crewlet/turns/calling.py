"""A reply's calls: made one after another, those that reach outside between an intent and an outcome on record."""

from __future__ import annotations

import msgspec

from crewlet.base.errors import Fenced, Unavailable
from crewlet.events.types import ToolExecution
from crewlet.inbox import CallAt
from crewlet.llm import ModelReply, ToolCall, ToolResultMessage
from crewlet.tools import CallContext, Hint, Tool, ToolResult, reaches_outside
from crewlet.turns.conversation import Conversation
from crewlet.turns.live_view import LiveView
from crewlet.turns.phase_plan import PhasePlan
from crewlet.turns.phase_record import PhaseRecord
from crewlet.turns.repeats import Repeat, RepeatedCall, Repeats, why_refused
from crewlet.turns.tool_calls import call_tool, proves_outside, recorded_arguments, refusal_of
from crewlet.turns.turn_scope import TurnScope

__all__ = ["MAY_HAVE_HAPPENED", "Calling"]

MAY_HAVE_HAPPENED = (
    "The process that made this call ended before its result was known: the call may have happened. Check what is"
    " there before you repeat it."
)

NOT_MADE = "This call was not made."


class Calling:
    """Makes one phase's calls. Every call in its conversation has exactly one result."""

    def __init__(
        self, plan: PhasePlan, scope: TurnScope, conversation: Conversation, record: PhaseRecord, view: LiveView
    ) -> None:
        self._plan = plan
        self._scope = scope
        self._conversation = conversation
        self._record = record
        self._view = view
        self._asks: list[str] = []
        self._waiting_for = ""
        self._repeats = Repeats()

    @property
    def asks(self) -> tuple[str, ...]:
        """The channels of the asks that the phase waits for."""
        return tuple(self._asks)

    @property
    def is_waiting(self) -> bool:
        """Whether a call asked the turn to wait."""
        return bool(self._waiting_for)

    async def all_of(self, reply: ModelReply, round_num: int) -> None:
        """Make every call of a reply and add its result. Raises ``Fenced``, ``Unavailable``, ``RepeatedCall``."""
        for index, call in enumerate(reply.message.calls):
            result = await self._call(call, CallAt(self._plan.path, round_num, index), reply.message.text)
            text = result.text or "(no output)"
            self._conversation.add(ToolResultMessage(call.id, call.name, text, is_error=result.is_error))
            if result.ends_turn and not result.is_error:
                self._waiting_for = call.name
                self._asks.extend([result.ask] if result.ask else [])

    async def _call(self, call: ToolCall, at: CallAt, text: str) -> ToolResult:
        scope, tool = self._scope, self._plan.toolbox.find(call.name)
        execution = ToolExecution(
            round=at.round_num,
            name=call.name,
            arguments=recorded_arguments(call),
            started_at=scope.clock.now(),
            origin="builtin" if tool is None else tool.row.origin,
            server="" if tool is None else tool.row.server,
        )
        started_s = scope.clock.elapsed_s()
        await self._view.calling(execution, text)
        try:
            # Last of all before the call: between an earlier check and the call the seat could have moved (S-074).
            scope.fence.check()
            result = await self._perform(call, at)
        except (Fenced, Unavailable, RepeatedCall) as ended:
            self._note(execution, started_s, ToolResult(str(ended), is_error=True))
            raise
        await self._view.called(self._note(execution, started_s, result))
        return result

    async def _perform(self, call: ToolCall, at: CallAt) -> ToolResult:
        scope, toolbox = self._scope, self._plan.toolbox
        repeat = self._repeats.next(call)
        if repeat is Repeat.END:
            raise RepeatedCall(call.name, self._repeats.times(call))
        tool = toolbox.find(call.name)
        recorded = await self._on_record(tool, at)
        if recorded is not None:
            # Counted, so that the calls behind it have the places that they had.
            scope.context_for(call.name, self._record.trace)
            return self._made(tool, recorded)
        told = self._read_back(call, at)
        refusal = refusal_of(call, toolbox, waiting_for=self._waiting_for)
        refusal = refusal or (why_refused(call) if repeat is Repeat.REFUSE else "")
        if refusal or tool is None:
            return told or ToolResult(refusal, is_error=True)
        is_outside = reaches_outside(tool.row)
        if is_outside and scope.journal.passed(at):
            # It was refused then, whatever would become of it now: what was made is on record.
            return told or ToolResult(NOT_MADE, is_error=True)
        context = scope.context_for(call.name, self._record.trace)
        result = await self._outside(tool, call, context, at) if is_outside else None
        return self._made(tool, result or told or await self._make(tool, call, context))

    def _made(self, tool: Tool | None, result: ToolResult) -> ToolResult:
        if tool is not None:
            self._scope.made.note(tool.row, result)
        return result

    async def _on_record(self, tool: Tool | None, at: CallAt) -> ToolResult | None:
        """What came of a call that a predecessor made, whatever has become of its tool meanwhile.

        ``None`` for one that it did not make, and for one that may be made again.
        """
        journal, scope = self._scope.journal, self._scope
        known = journal.outcome_at(at)
        if known is None and journal.was_intended(at) and not _may_be_repeated(tool):
            known = ToolResult(MAY_HAVE_HAPPENED, is_error=True, unknown=True)
            await journal.came_out(at, known)
        if known is not None:
            scope.reached_outside = scope.reached_outside or known.unknown or not known.is_error
        return known

    def _read_back(self, call: ToolCall, at: CallAt) -> ToolResult | None:
        """What the model was told of a call, where a later reply is on record.

        One that builds up what the phase itself knows is made again.
        """
        later = self._scope.journal.reply_at(at.phase, at.round_num + 1)
        if later is None or self._plan.toolbox.builds_state(call.name):
            return None
        for message in later.shown:
            if isinstance(message, ToolResultMessage) and message.call_id == call.id:
                return ToolResult(message.content, is_error=message.is_error)
        return None

    async def _outside(self, tool: Tool, call: ToolCall, context: CallContext, at: CallAt) -> ToolResult:
        journal = self._scope.journal
        if not journal.was_intended(at):
            await journal.intend(at, call)
            # Writing it down took time; the seat could have moved meanwhile.
            self._scope.fence.check()
        result = await self._make(tool, call, context)
        # The record stands for the call from here on: whether or not it can be written, the call has been made.
        self._scope.reached_outside = self._scope.reached_outside or proves_outside(tool.row, result)
        await journal.came_out(at, result)
        return result

    async def _make(self, tool: Tool, call: ToolCall, context: CallContext) -> ToolResult:
        with self._scope.tracer.span("tool.call", context.trace, tool=call.name, origin=tool.row.origin) as span:
            result = await call_tool(
                tool, call, context, backstop_s=self._scope.within_s(self._scope.config.tool_call_backstop_s)
            )
            if result.is_error:
                span.failed("the call failed")
        return result

    def _note(self, execution: ToolExecution, started_s: float, result: ToolResult) -> ToolExecution:
        done = msgspec.structs.replace(
            execution,
            result=result.text,
            error=result.text if result.is_error else "",
            duration_ms=self._scope.elapsed_ms(started_s),
        )
        self._record.executions.append(done)
        return done


def _may_be_repeated(tool: Tool | None) -> bool:
    return tool is not None and tool.row.annotations.idempotent is Hint.YES
