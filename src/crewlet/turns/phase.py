"""One phase: rounds of asking the model and running its calls, until something ends it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from crewlet.base import limits
from crewlet.base.errors import CrewletError
from crewlet.base.trace import child_of
from crewlet.events.types import AgentPhaseStarted, PromptSize, Refusal
from crewlet.llm import SCRIPTED_MODEL, ModelReply, StopReason, UserMessage
from crewlet.turns.asking import Asking
from crewlet.turns.calling import Calling
from crewlet.turns.conversation import Conversation
from crewlet.turns.judge import Judge
from crewlet.turns.live_view import LiveView
from crewlet.turns.phase_plan import PhasePlan
from crewlet.turns.phase_record import PhaseRecord
from crewlet.turns.prompt_sections import conversation_bytes, tool_bytes
from crewlet.turns.prompts import corrective, extension_message
from crewlet.turns.round_step import PHASE_ENDING_STOPS, RoundState, Step, after_calls, after_reply
from crewlet.turns.turn_scope import TurnScope

__all__ = ["Phase", "PhaseBroke", "PhaseEnd"]


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
        self._conversation = Conversation(plan.user)
        trace = child_of(scope.events.trace, scope.ids)
        self._record = PhaseRecord.of(plan, trace=trace, clock=scope.clock)
        self._view = LiveView(scope.events, trace, plan, model="")
        self._judge = Judge(plan, scope, self._record)
        parts = (plan, scope, self._conversation, self._record, self._view)
        self._asking, self._calling = Asking(*parts), Calling(*parts)

    async def run(self) -> PhaseEnd:
        """Round after round to the phase's own end. Leaves its record open in the scope for the turn to publish.

        Raises ``PhaseBroke``, ``ChainExhausted`` or ``ModelFailure``, ``BudgetExhausted``, ``Unavailable``, ``Fenced``.
        """
        trace, plan = self._record.trace, self._plan
        with self._scope.tracer.span(f"agent.turn.{plan.phase}", trace, iteration=plan.iteration):
            return await self._run()

    async def _run(self) -> PhaseEnd:
        await self._open()
        state = RoundState(1, self._plan.max_rounds, self._scope.config.correctives_max)
        while True:
            self._scope.check()
            reply = await self._asking.reply(state.round_num)
            step = after_reply(reply, state)
            if step is Step.STOP:
                raise PhaseBroke(reply)
            if step is Step.CALL_TOOLS:
                await self._calling.all_of(reply, state.round_num)
                submitted = self._plan.toolbox.finisher.ended
                step = after_calls(state, waiting=self._calling.is_waiting, submitted=submitted)
                if step is Step.RESCUE:
                    state = await self._extended(state)
                    step = after_calls(state, waiting=False, submitted=False)
            else:
                await self._answered_in_prose(reply, state, corrected=step is Step.CORRECT)
            if step in (Step.SUBMITTED, Step.WAITING, Step.RESCUE):
                return PhaseEnd(step, self._record.last_text, self._calling.asks)
            state = state.next(corrected=step is Step.CORRECT)

    async def _extended(self, state: RoundState) -> RoundState:
        """The state with the rounds that the judge grants, of which the model is told."""
        more = await self._judge.more_rounds(state.round_num, state.max_rounds)
        if more:
            self._record.max_rounds += more
            self._conversation.add(UserMessage(extension_message(more)))
        return state.extended(more)

    async def _open(self) -> None:
        plan, record, scope = self._plan, self._record, self._scope
        scope.open_phases.append(record)
        begun = AgentPhaseStarted(
            **scope.events.of_turn,
            phase=plan.phase,
            iteration=plan.iteration,
            host_phase="" if plan.host is None else plan.host.phase,
            task_id=plan.task_id,
            provider_key=record.provider_key,
            # A script says what it is before it says anything else; a real model's name comes with its reply.
            model="" if plan.model.is_real else SCRIPTED_MODEL,
        )
        # Neither waits for the other's way to the broker and to the disk: the model waits for both.
        await asyncio.gather(scope.events.tell(begun, record.trace), self._tell_size())
        await self._view.opened()

    async def _tell_size(self) -> None:
        plan, specs = self._plan, self._plan.toolbox.specs()
        messages = self._conversation.messages
        system, tools = len(plan.system.encode()), tool_bytes(specs)
        said = conversation_bytes(messages)
        await self._scope.events.tell(
            PromptSize(
                **self._scope.events.of_turn,
                phase=plan.phase,
                iteration=plan.iteration,
                system_bytes=system,
                user_bytes=len(plan.user.encode()),
                message_bytes=said,
                tool_bytes=tools,
                tool_count=len(specs),
                tokens_approx=(system + said + tools) // limits.BYTES_A_TOKEN,
            ),
            self._record.trace,
        )

    async def _answered_in_prose(self, reply: ModelReply, state: RoundState, *, corrected: bool) -> None:
        self._record.mark_declined(state.round_num)
        await self._view.said(state.round_num, reply.message.text)
        if corrected:
            self._conversation.add(UserMessage(corrective(self._plan.toolbox.finisher.row.name)))
