"""A round's reply: read back where it is recorded, else asked for, recorded and charged, in this order."""

from __future__ import annotations

import asyncio

from crewlet.events.types import ProviderFallback
from crewlet.inbox import Note, RecordedReply
from crewlet.llm import ChainExhausted, FailureKind, Fallback, ModelFailure, ModelReply, ModelRequest, UserMessage
from crewlet.turns.conversation import Conversation
from crewlet.turns.live_view import LiveView
from crewlet.turns.meter import BudgetExhausted, Spent
from crewlet.turns.note_telling import tell_note
from crewlet.turns.phase_plan import PhasePlan
from crewlet.turns.phase_record import PhaseRecord
from crewlet.turns.prompts import note_message
from crewlet.turns.turn_scope import TurnScope

__all__ = ["Asking"]


class Asking:
    """Gets one phase's replies."""

    def __init__(
        self, plan: PhasePlan, scope: TurnScope, conversation: Conversation, record: PhaseRecord, view: LiveView
    ) -> None:
        self._plan = plan
        self._scope = scope
        self._conversation = conversation
        self._record = record
        self._view = view

    async def reply(self, round_num: int) -> ModelReply:
        """The reply of a round, which stands in the conversation afterwards.

        It is recorded before it is charged, and charged before any of its calls is made; a recorded one is not asked
        for again, and the charge of the last recorded one is completed. Raises what the model, the meter and the
        journal raise.
        """
        recorded = self._scope.journal.replay(self._plan.path, round_num)
        if recorded is not None:
            self._conversation.was_shown(recorded.shown)
            self._record.user = self._conversation.first
            reply, number = recorded.reply, recorded.number
            is_charged = not self._may_be_uncharged(recorded, round_num)
            self._scope.notes.restore(recorded.notes)
            self._record.add_steers(recorded.notes, round_num)
            self._keep(reply, round_num, duration_ms=0)
        else:
            notes = await self._read_notes(round_num)
            await self._scope.meter.admit()
            reply = await self._asked(round_num)
            news = self._conversation.news
            number = await self._scope.journal.replied(self._plan.path, round_num, news, reply, notes)
            is_charged = False
        self._conversation.answered(reply.message)
        if not is_charged:
            await self._charge(reply, number)
        return reply

    def _may_be_uncharged(self, recorded: RecordedReply, round_num: int) -> bool:
        """Whether the process may have ended before the charge; beside other workers, each one's last may be."""
        if self._scope.worker:
            return self._scope.journal.reply_at(self._plan.path, round_num + 1) is None
        return recorded.is_last

    async def _read_notes(self, round_num: int) -> tuple[Note, ...]:
        """Show the model what people told the turn; its first round shows what earlier phases have read as well.

        Returns the notes that no round has read before.
        """
        if not self._plan.reads_notes:
            return ()
        carried = self._scope.notes.read_before() if round_num == 1 else ()
        fresh = tuple(self._scope.notes.take())
        for note in (*carried, *fresh):
            self._conversation.add(UserMessage(note_message(note)))
        self._record.add_steers(fresh, round_num)
        for note in fresh:
            await tell_note(self._scope.events, note, self._plan, round_num)
        return fresh

    async def _charge(self, reply: ModelReply, number: int) -> None:
        spent = Spent(
            lane=self._scope.lane,
            number=number,
            usage=reply.usage,
            provider_key=reply.provider_key,
            model=reply.model,
        )
        try:
            await self._scope.meter.charge(spent, self._scope.fence.check)
        except BudgetExhausted:
            self._scope.journal.charged(self._plan.path, number)
            raise
        self._scope.journal.charged(self._plan.path, number)

    async def _asked(self, round_num: int) -> ModelReply:
        plan, scope = self._plan, self._scope
        request = ModelRequest(
            plan.system, self._conversation.messages, plan.toolbox.specs(), scenario=self._scenario(round_num)
        )
        handed_over: list[Fallback] = []
        live = self._view.streaming(round_num)
        started_at, started_s = scope.clock.now(), scope.clock.elapsed_s()
        try:
            with scope.tracer.child("llm.round", self._record.trace, round=round_num) as span:
                async with asyncio.timeout(scope.within_s(scope.config.model_call_backstop_s)):
                    reply = await plan.model.complete(
                        request, on_delta=live.add if plan.streams else None, on_fallback=handed_over.append
                    )
                span.note(model=reply.model, provider=reply.provider_key)
        except TimeoutError as late:
            scope.check()
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
        self._keep_sums(reply)
        return reply

    def _keep(self, reply: ModelReply, round_num: int, *, duration_ms: int) -> None:
        self._record.add_reply(reply, round_num=round_num, started_at=self._scope.clock.now(), duration_ms=duration_ms)
        self._keep_sums(reply)

    def _keep_sums(self, reply: ModelReply) -> None:
        scope = self._scope
        scope.usage += reply.usage
        scope.cost = scope.cost.plus(reply.cost_usd)
        scope.models[self._plan.phase], scope.provider_key = reply.model, reply.provider_key
        self._view.model = reply.model

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
