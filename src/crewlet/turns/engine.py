"""The turn engine: runs one turn from its trigger to an outcome, and lets no fault of its own travel further."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Fenced, PayloadTooLarge, StoppedByPerson, Unavailable
from crewlet.base.fence import Fence
from crewlet.base.ids import Ids
from crewlet.base.trace import child_of
from crewlet.events.types import (
    AgentTurnCompleted,
    AgentTurnStarted,
    AgentTurnStopped,
    LlmUnavailable,
    TurnBudgetExhausted,
    TurnGuardBreach,
)
from crewlet.inbox import Decision, Reply, Trigger, TurnJournal, TurnOutcome
from crewlet.llm import ChainExhausted, ModelFailure
from crewlet.tracing import Tracer
from crewlet.turns.config import TurnConfig
from crewlet.turns.iterations import EXECUTE, REVIEW, Iterations
from crewlet.turns.meter import BudgetExhausted
from crewlet.turns.note_telling import tell_note
from crewlet.turns.phase import PhaseBroke
from crewlet.turns.setup import TurnSetup
from crewlet.turns.time_limit import time_limit_of
from crewlet.turns.turn_end import LLM_UNAVAILABLE, Breach, TurnEnd, broken_by, closing_of, ended_by_guard
from crewlet.turns.turn_events import OfTurn, Publish, TurnEvents, trigger_summary
from crewlet.turns.turn_scope import TurnScope

__all__ = ["TurnEngine"]

_log = structlog.get_logger(__name__)

PANICKED = "unhandled_exception"


class TurnEngine:
    """Runs turns, any number at once; holds nothing of any of them.

    Two events of a turn are more than telemetry. ``agent_turn_started`` must be recorded before anything is spent:
    without it the turn does not run, and its trigger comes back. ``agent_turn_completed`` carries the answer that an
    operator reads: both are retried a few times. A turn whose answer could not be recorded, and that reached nothing
    outside, is not finished. Every other event that is lost is logged as ``phase_telemetry_publish_failed``.
    """

    def __init__(
        self,
        publish: Publish,
        clock: Clock,
        ids: Ids,
        config: TurnConfig | None = None,
        *,
        tracer: Tracer | None = None,
        publish_live: Publish | None = None,
    ) -> None:
        self._publish = publish
        self._publish_live = publish_live or publish
        self._clock = clock
        self._ids = ids
        self._config = config or TurnConfig()
        self._tracer = tracer or Tracer(clock, ids)

    async def run(self, trigger: Trigger, fence: Fence, setup: TurnSetup, journal: TurnJournal) -> TurnOutcome:
        """Run one turn, or the rest of a journalled one, to its outcome.

        Raises ``Fenced`` when the seat moved: its new holder goes on with the turn. A fault of the engine is an
        outcome, finished and failed (S-125).
        """
        scope = self._scope_of(trigger, fence, setup, journal)
        facts = scope.events.of_turn
        # The very span that the turn's events carry, so that its parent is the event that woke it (E-182).
        with self._tracer.span(
            "agent.turn", scope.events.trace, seat=trigger.handle, turn_id=facts["turn_id"], work_key=facts["work_key"]
        ) as span:
            outcome = await self._run(scope, setup)
            span.note(decision=str(outcome.decision))
            if outcome.error:
                span.failed(outcome.error_kind or outcome.error)
        return outcome

    async def _run(self, scope: TurnScope, setup: TurnSetup) -> TurnOutcome:
        started_s = self._clock.elapsed_s()
        try:
            end, cause = await self._work(scope, setup)
            await scope.close_phases(closing_of(end))
            await _expire_notes(scope, goes_on=end.deferred)
            outcome = await self._complete(scope, end, started_s)
        except Exception as panic:  # noqa: BLE001 - supervisor: a defect, which a redelivery would only meet again
            _log.exception("turn_phase_panicked", seat=scope.trigger.handle, turn=scope.events.turn_id)
            return await self._bury(scope, panic, started_s)
        if end.deferred and cause is not None:
            raise cause
        return outcome

    async def _work(self, scope: TurnScope, setup: TurnSetup) -> tuple[TurnEnd, Exception | None]:
        try:
            await scope.events.record(self._started(scope))
            await scope.trigger.read_thread()
            return await Iterations(scope, setup).run(), None
        except (PhaseBroke, ChainExhausted, ModelFailure, BudgetExhausted, Unavailable, Fenced) as cause:
            end = broken_by(cause)
            _log.warning("turn_broke", seat=scope.trigger.handle, turn=scope.events.turn_id, error=end.error)
            if end.error_kind == LLM_UNAVAILABLE:
                await self._tell_unavailable(scope, cause, end)
            if isinstance(cause, BudgetExhausted):
                await self._tell_exhausted(scope, cause)
            if isinstance(cause, StoppedByPerson):
                await scope.events.tell(_stopped(scope, cause))
            return end, cause

    async def _complete(self, scope: TurnScope, end: TurnEnd, started_s: float) -> TurnOutcome:
        """Publish the end and say what becomes of the trigger; an answer that is not recorded was not given."""
        outcome = TurnOutcome(
            turn_id=scope.events.turn_id,
            decision=end.decision,
            finished=end.finished,
            artifact=end.artifact,
            error=end.error,
            error_kind=end.error_kind,
            reached_outside=scope.reached_outside,
            asks=end.asks,
        )
        completed = self._completed(scope, end, started_s)
        if end.deferred:
            await scope.events.tell(completed)
            return outcome
        try:
            await self._record_end(scope, completed, is_final=end.finished)
        except Unavailable as lost:
            _log.error("turn_completion_publish_failed", turn=scope.events.turn_id, error=str(lost))
            if _answer_is_lost(outcome, scope.trigger.reply):
                return replace(
                    outcome, decision=Decision.FAILED, finished=False, error=str(lost), error_kind="unavailable"
                )
        return outcome

    async def _record_end(self, scope: TurnScope, completed: AgentTurnCompleted, *, is_final: bool) -> None:
        try:
            # What broke may still be gone on with by another process, which then has another end to tell.
            await scope.events.record(completed, once=is_final)
        except PayloadTooLarge as refused:
            _log.warning("turn_artifact_cut", turn=completed.turn_id, size=refused.size, limit=refused.limit)
            cut = completed.artifact[: limits.TURN_RECORD_TEXT_MAX_CHARS]
            note = f"{cut}\n\n(cut: the whole answer is above the broker's limit of {refused.limit} bytes)"
            await scope.events.tell(msgspec.structs.replace(completed, artifact=note))

    async def _bury(self, scope: TurnScope, panic: Exception, started_s: float) -> TurnOutcome:
        """Say that the engine failed, whatever else fails while saying it, and finish the turn (S-125, S-128)."""
        breach = Breach(PANICKED, f"{type(panic).__name__}: {panic}")
        end = ended_by_guard(breach)
        events = scope.events
        told = (
            lambda: scope.close_phases(closing_of(end)),
            lambda: _expire_notes(scope),
            lambda: events.tell(TurnGuardBreach(**events.of_turn, kind=breach.kind, detail=breach.detail)),
            lambda: events.tell(self._completed(scope, end, started_s)),
        )
        for tell in told:
            try:
                await tell()
            except Exception:  # noqa: BLE001 - supervisor: what buries a fault must not raise another
                _log.exception("turn_burial_failed", seat=scope.trigger.handle, turn=events.turn_id)
        return TurnOutcome(
            turn_id=events.turn_id,
            decision=end.decision,
            finished=True,
            error=end.error,
            error_kind=end.error_kind,
            reached_outside=scope.reached_outside,
        )

    async def _tell_unavailable(self, scope: TurnScope, cause: Exception, end: TurnEnd) -> None:
        chain = cause.tried if isinstance(cause, ChainExhausted) else (_provider_of(cause),)
        unavailable = LlmUnavailable(
            **scope.events.of_turn,
            phase="" if scope.open_phase is None else scope.open_phase.phase,
            chain=chain,
            error=str(cause.last) if isinstance(cause, ChainExhausted) else end.error,
            error_kind=end.phase_error_kind,
        )
        await scope.events.tell(unavailable)

    async def _tell_exhausted(self, scope: TurnScope, cause: BudgetExhausted) -> None:
        window = cause.refused[0]
        exhausted = TurnBudgetExhausted(
            **scope.events.of_turn,
            scope=window.scope,
            period=window.period,
            label=window.label,
            spent=window.spent,
            ceiling=window.ceiling,
            resets_at=window.resets_at,
            error=str(cause),
        )
        await scope.events.tell(exhausted)

    def _scope_of(self, trigger: Trigger, fence: Fence, setup: TurnSetup, journal: TurnJournal) -> TurnScope:
        turn_id = journal.turn_id
        seat = setup.seat
        setup.notes.wait_again(journal.notes_left)
        events = TurnEvents(
            publish=self._publish,
            publish_live=self._publish_live,
            clock=self._clock,
            ids=self._ids,
            config=self._config,
            trigger=trigger,
            turn_id=turn_id,
            seat=seat,
            trace=child_of(trigger.trace, self._ids),
            of_turn=OfTurn(
                turn_id=turn_id,
                agent_handle=seat.handle,
                agent_id=seat.agent_id,
                role=seat.name,
                work_key=trigger.work_key,
            ),
            journal=journal,
        )
        return TurnScope(
            trigger=trigger,
            summary=trigger_summary(trigger),
            fence=fence,
            events=events,
            config=self._config,
            clock=self._clock,
            ids=self._ids,
            tracer=self._tracer,
            journal=journal,
            meter=setup.meter,
            notes=setup.notes,
            reached_outside=journal.reached_outside,
            # What a predecessor took of it nobody knows.
            time_limit_s=None if journal.resumed else time_limit_of(trigger),
        )

    def _started(self, scope: TurnScope) -> AgentTurnStarted:
        return AgentTurnStarted(
            **scope.events.of_turn,
            trigger=scope.summary,
            conversation_key=scope.trigger.conversation_key,
            started_at=self._clock.now(),
            resumed=scope.journal.resumed,
        )

    def _completed(self, scope: TurnScope, end: TurnEnd, started_s: float) -> AgentTurnCompleted:
        usage = scope.usage
        return AgentTurnCompleted(
            **scope.events.of_turn,
            decision="" if end.deferred else str(end.decision),
            iterations=scope.iterations,
            failed=end.failed,
            error=end.error,
            error_kind=end.error_kind,
            stopped=end.decision is Decision.STOPPED,
            redelivered=_comes_back(scope, end),
            artifact=end.artifact,
            asks=end.asks,
            execute_model=scope.models.get(EXECUTE, ""),
            review_model=scope.models.get(REVIEW, ""),
            subagent_count=scope.subagents,
            subagent_tokens=scope.subagent_tokens,
            provider_key=scope.provider_key,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            cost_usd=scope.cost.said,
            tools=tuple(scope.calls_made),
            conversation_key=scope.trigger.conversation_key,
            trigger=scope.summary,
            duration_ms=scope.elapsed_ms(started_s),
        )


async def _expire_notes(scope: TurnScope, *, goes_on: bool = False) -> None:
    """Take no more notes, and say of those that no round has read what became of them."""
    for note in scope.notes.close(goes_on=goes_on):
        await tell_note(scope.events, note)


def _stopped(scope: TurnScope, by: StoppedByPerson) -> AgentTurnStopped:
    facts = scope.events.of_turn
    return AgentTurnStopped(**facts, stopped_by=by.by, stopped_by_seat=by.by_seat, reason=by.reason)


def _comes_back(scope: TurnScope, end: TurnEnd) -> bool:
    """Whether somebody will go on: the turn broke, proved nothing outside, and has a delivery left.

    One whose seat moved is its new holder's, whatever it has reached.
    """
    return not end.finished and (end.deferred or not scope.reached_outside) and scope.trigger.headroom > 0


def _answer_is_lost(outcome: TurnOutcome, reply: Reply) -> bool:
    """Whether an answer that only the completion carries is nowhere, and may safely be worked out again."""
    answered = reply is Reply.ENGINE and outcome.decision is Decision.DONE
    return answered and outcome.finished and not outcome.reached_outside


def _provider_of(cause: Exception) -> str:
    return cause.provider_key if isinstance(cause, ModelFailure) else ""
