"""One phase: rounds of asking the model and running its calls, until something ends it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec

from crewlet.base.errors import CrewletError, Fenced, Unavailable
from crewlet.base.trace import child_of
from crewlet.events.types import AgentPhaseStarted, ProviderFallback, Refusal, ToolExecution
from crewlet.llm import (
    SCRIPTED_MODEL,
    ChainExhausted,
    FailureKind,
    Fallback,
    Message,
    Model,
    ModelFailure,
    ModelReply,
    ModelRequest,
    StopReason,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from crewlet.tools import ToolResult
from crewlet.turns.live_view import LiveView
from crewlet.turns.phase_record import PhaseRecord
from crewlet.turns.prompts import corrective
from crewlet.turns.round_step import PHASE_ENDING_STOPS, RoundState, Step, after_calls, after_reply
from crewlet.turns.tool_calls import call_tool, proves_outside, recorded_arguments, refusal_of
from crewlet.turns.toolbox import Toolbox
from crewlet.turns.turn_scope import TurnScope

__all__ = ["Phase", "PhaseBroke", "PhaseEnd", "PhasePlan"]


class PhaseBroke(CrewletError):
    """A reply ended the phase by its stop reason; none of its calls was run."""

    def __init__(self, reply: ModelReply) -> None:
        self.stop_reason = reply.stop_reason
        self.refusal: Refusal | None = None
        what = PHASE_ENDING_STOPS[reply.stop_reason]
        if reply.stop_reason is StopReason.REFUSAL:
            self.refusal = Refusal(category=reply.refusal_category, explanation=reply.refusal_explanation)
            what = ": ".join(part for part in (what, reply.refusal_explanation or reply.refusal_category) if part)
        super().__init__(what)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePlan:
    """Everything fixed about a phase before it begins; the prompts stay as they are to its end."""

    phase: str
    iteration: int
    model: Model
    system: str
    user: str
    toolbox: Toolbox
    max_rounds: int
    streams: bool = False


@dataclass(frozen=True, slots=True)
class PhaseEnd:
    """How a phase ended on its own: submitted, waiting for ``asks``, or rescued with ``text`` alone."""

    step: Step
    text: str
    asks: tuple[str, ...] = ()


class Phase:
    """Runs one plan. The conversation only ever grows, and every call in it has exactly one result."""

    def __init__(self, plan: PhasePlan, scope: TurnScope) -> None:
        self._plan = plan
        self._scope = scope
        self._messages: list[Message] = [UserMessage(plan.user)]
        self._asks: list[str] = []
        self._waiting_for = ""
        trace = child_of(scope.events.trace, scope.ids)
        self._record = PhaseRecord(
            phase=plan.phase,
            iteration=plan.iteration,
            max_rounds=plan.max_rounds,
            system=plan.system,
            user=plan.user,
            trace=trace,
            started_at=scope.clock.now(),
            started_s=scope.clock.elapsed_s(),
            provider_key=next(iter(plan.model.keys), ""),
        )
        self._view = LiveView(scope.events, trace, phase=plan.phase, iteration=plan.iteration, model="")

    async def run(self) -> PhaseEnd:
        """Round after round to the phase's own end. Leaves its record open in the scope for the turn to publish.

        Raises ``PhaseBroke``, ``ChainExhausted`` or ``ModelFailure``, ``Unavailable`` from a built-in, ``Fenced``.
        """
        trace, plan = self._record.trace, self._plan
        with self._scope.tracer.span(f"agent.turn.{plan.phase}", trace, iteration=plan.iteration):
            return await self._run()

    async def _run(self) -> PhaseEnd:
        await self._open()
        state = RoundState(1, self._plan.max_rounds, self._scope.config.correctives_max)
        while True:
            self._scope.fence.check()
            reply = await self._ask(state.round_num)
            step = after_reply(reply, state)
            if step is Step.STOP:
                raise PhaseBroke(reply)
            # An empty reply is no message: some vendors refuse a conversation that holds one.
            if reply.message.text or reply.message.calls:
                self._messages.append(reply.message)
            if step is Step.CALL_TOOLS:
                step = await self._call_all(reply, state)
            else:
                await self._answered_in_prose(reply, state, corrected=step is Step.CORRECT)
            if step in (Step.SUBMITTED, Step.WAITING, Step.RESCUE):
                return PhaseEnd(step, self._record.last_text, tuple(self._asks))
            state = state.next(corrected=step is Step.CORRECT)

    async def _open(self) -> None:
        plan, record, scope = self._plan, self._record, self._scope
        scope.open_phase = record
        await scope.events.tell(
            AgentPhaseStarted(
                **scope.events.of_turn,
                phase=plan.phase,
                iteration=plan.iteration,
                provider_key=record.provider_key,
                # A script says what it is before it says anything else; a real model's name comes with its reply.
                model="" if plan.model.is_real else SCRIPTED_MODEL,
            ),
            record.trace,
        )
        await self._view.opened()

    async def _ask(self, round_num: int) -> ModelReply:
        plan, scope = self._plan, self._scope
        request = ModelRequest(
            plan.system, tuple(self._messages), plan.toolbox.specs(), scenario=self._scenario(round_num)
        )
        handed_over: list[Fallback] = []
        live = self._view.streaming(round_num)
        started_at, started_s = scope.clock.now(), scope.clock.elapsed_s()
        try:
            with scope.tracer.child("llm.round", self._record.trace, round=round_num) as span:
                async with asyncio.timeout(scope.config.model_call_backstop_s):
                    reply = await plan.model.complete(
                        request, on_delta=live.add if plan.streams else None, on_fallback=handed_over.append
                    )
                span.note(model=reply.model, provider=reply.provider_key)
        except TimeoutError as late:
            key = self._record.provider_key
            raise ModelFailure(FailureKind.TIMEOUT, "the model did not answer in time", provider_key=key) from late
        except (ChainExhausted, ModelFailure):
            await self._tell_fallbacks(handed_over)
            raise
        finally:
            await live.close()
        await self._tell_fallbacks(handed_over)
        self._record.add_reply(
            reply, round_num=round_num, started_at=started_at, duration_ms=scope.elapsed_ms(started_s)
        )
        scope.usage += reply.usage
        scope.models[plan.phase], scope.provider_key = reply.model, reply.provider_key
        self._view.model = reply.model
        return reply

    async def _answered_in_prose(self, reply: ModelReply, state: RoundState, *, corrected: bool) -> None:
        self._record.mark_declined(state.round_num)
        await self._view.said(state.round_num, reply.message.text)
        if corrected:
            self._messages.append(UserMessage(corrective(self._plan.toolbox.finisher.row.name)))

    async def _call_all(self, reply: ModelReply, state: RoundState) -> Step:
        for call in reply.message.calls:
            result = await self._call(call, state.round_num, reply.message.text)
            text = result.text or "(no output)"
            self._messages.append(ToolResultMessage(call.id, call.name, text, is_error=result.is_error))
            if result.ends_turn and not result.is_error:
                self._waiting_for = call.name
                self._asks.extend([result.ask] if result.ask else [])
        return after_calls(state, waiting=bool(self._waiting_for), submitted=self._plan.toolbox.finisher.ended)

    async def _call(self, call: ToolCall, round_num: int, text: str) -> ToolResult:
        scope, tool = self._scope, self._plan.toolbox.find(call.name)
        execution = ToolExecution(
            round=round_num,
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
            result = await self._perform(call)
        except (Fenced, Unavailable) as ended:
            self._note(execution, started_s, ToolResult(str(ended), is_error=True))
            raise
        await self._view.called(self._note(execution, started_s, result))
        return result

    async def _perform(self, call: ToolCall) -> ToolResult:
        scope, toolbox = self._scope, self._plan.toolbox
        refusal = refusal_of(call, toolbox, waiting_for=self._waiting_for)
        tool = toolbox.find(call.name)
        if refusal or tool is None:
            return ToolResult(refusal, is_error=True)
        context = scope.context_for(call.name, self._record.trace)
        with scope.tracer.span("tool.call", context.trace, tool=call.name, origin=tool.row.origin) as span:
            result = await call_tool(tool, call, context, backstop_s=scope.config.tool_call_backstop_s)
            if result.is_error:
                span.failed("the call failed")
        scope.reached_outside = scope.reached_outside or proves_outside(tool.row, result)
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

    async def _tell_fallbacks(self, handed_over: list[Fallback]) -> None:
        for each in handed_over:
            moved = ProviderFallback(
                **self._scope.events.of_turn,
                phase=self._plan.phase,
                iteration=self._plan.iteration,
                from_provider_key=each.from_provider_key,
                to_provider_key=each.to_provider_key,
                reason=str(each.reason),
                error=each.error,
            )
            await self._scope.events.tell(moved, self._record.trace)

    def _scenario(self, round_num: int) -> dict[str, str]:
        return {
            "seat": self._scope.trigger.handle,
            "phase": self._plan.phase,
            "iteration": str(self._plan.iteration),
            "round": str(round_num),
            "trigger": self._scope.trigger.lead.type,
        }
