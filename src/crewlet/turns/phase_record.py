"""What one phase did, gathered round by round, and the event that keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.trace import Trace
from crewlet.events.types import (
    AgentPhaseCompleted,
    PhaseRound,
    PhaseSteer,
    Refusal,
    RoundNarration,
    ToolExecution,
    TriggerSummary,
)
from crewlet.inbox import Note
from crewlet.llm import ModelReply, Usage
from crewlet.turns.cost import NO_COST, Cost
from crewlet.turns.phase_plan import PhasePlan
from crewlet.turns.prompt_sections import SYSTEM_KEYS, USER_KEYS, sections_of
from crewlet.turns.turn_events import OfTurn

__all__ = ["PhaseClosing", "PhaseRecord", "lean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseClosing:
    """How a phase ended, as its record says it."""

    decision: str = ""
    notes: str = ""
    rescued: bool = False
    failed: bool = False
    error: str = ""
    error_kind: str = ""
    refusal: Refusal | None = None


@dataclass(slots=True, kw_only=True)
class PhaseRecord:
    """Grows while its phase runs, by one owner; lists are only ever appended to."""

    plan: PhasePlan
    max_rounds: int
    user: str
    trace: Trace
    started_at: datetime
    started_s: float
    model: str = ""
    provider_key: str = ""
    usage: Usage = field(default_factory=Usage)
    cost: Cost = NO_COST
    rounds: list[PhaseRound] = field(default_factory=list[PhaseRound])
    narration: list[RoundNarration] = field(default_factory=list[RoundNarration])
    executions: list[ToolExecution] = field(default_factory=list[ToolExecution])
    steers: list[PhaseSteer] = field(default_factory=list[PhaseSteer])
    empty_answers: int = 0

    @classmethod
    def of(cls, plan: PhasePlan, *, trace: Trace, clock: Clock) -> PhaseRecord:
        """The record of a phase that begins now."""
        return cls(
            plan=plan,
            max_rounds=plan.max_rounds,
            user=plan.user,
            trace=trace,
            started_at=clock.now(),
            started_s=clock.elapsed_s(),
            provider_key=next(iter(plan.model.keys), ""),
        )

    @property
    def phase(self) -> str:
        """Its phase's name."""
        return self.plan.phase

    def add_steers(self, notes: Iterable[Note], round_num: int) -> None:
        """The notes that one of its rounds was the first to read."""
        self.steers += [
            PhaseSteer(
                round=round_num,
                note_id=note.note_id,
                note=note.text,
                steered_by=note.by,
                steered_by_seat=note.by_seat,
            )
            for note in notes
        ]

    def add_reply(self, reply: ModelReply, *, round_num: int, started_at: datetime, duration_ms: int) -> None:
        """One provider call: its time, its tokens, and what was said beside the calls."""
        message, usage = reply.message, reply.usage
        self.model, self.provider_key = reply.model, reply.provider_key
        self.usage += usage
        self.cost = self.cost.plus(reply.cost_usd)
        self.rounds.append(
            PhaseRound(
                round=round_num,
                started_at=started_at,
                duration_ms=duration_ms,
                model=reply.model,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                cost_usd=reply.cost_usd,
                tool_calls=len(message.calls),
                stop_reason=str(reply.stop_reason),
            )
        )
        if not message.text and not message.calls:
            self.empty_answers += 1
        if message.text or message.reasoning:
            self.narration.append(RoundNarration(round=round_num, reasoning=message.reasoning, content=message.text))

    def mark_declined(self, round_num: int) -> None:
        """The round answered in prose where a call was due."""
        if self.narration and self.narration[-1].round == round_num:
            self.narration[-1] = msgspec.structs.replace(self.narration[-1], declined=True)
        else:
            self.narration.append(RoundNarration(round=round_num, declined=True))

    @property
    def last_text(self) -> str:
        """The latest thing said in prose."""
        return next((said.content for said in reversed(self.narration) if said.content), "")

    @property
    def response(self) -> str:
        """The latest round that said anything, its reasoning wrapped in ``<think>``."""
        said = next((said for said in reversed(self.narration) if said.content or said.reasoning), None)
        if said is None:
            return ""
        thought = f"<think>{said.reasoning}</think>" if said.reasoning else ""
        return "\n".join(part for part in (thought, said.content) if part)

    def completed(
        self, closing: PhaseClosing, of_turn: OfTurn, trigger: TriggerSummary, *, duration_ms: int
    ) -> AgentPhaseCompleted:
        """The durable record of the phase."""
        usage, plan, host = self.usage, self.plan, self.plan.host
        return AgentPhaseCompleted(
            **of_turn,
            phase=plan.phase,
            iteration=plan.iteration,
            host_phase="" if host is None else host.phase,
            host_iteration=0 if host is None else host.iteration,
            host_round=0 if host is None else host.round_num,
            task_id=plan.task_id,
            model=self.model,
            provider_key=self.provider_key,
            started_at=self.started_at,
            duration_ms=duration_ms,
            rounds=tuple(self.rounds),
            max_rounds=self.max_rounds,
            round_ceiling=plan.round_ceiling,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            total_tokens=usage.total,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            cost_usd=self.cost.said,
            system_prompt=plan.system,
            user_prompt=self.user,
            system_sections=sections_of(plan.system, SYSTEM_KEYS),
            user_sections=sections_of(self.user, USER_KEYS),
            response=self.response,
            round_narration=tuple(self.narration),
            tool_executions=tuple(self.executions),
            decision=closing.decision,
            notes=closing.notes,
            rescue_fired=closing.rescued,
            empty_answer_rounds=self.empty_answers,
            steers=tuple(self.steers),
            failed=closing.failed,
            error=closing.error,
            error_kind=closing.error_kind,
            refusal=closing.refusal,
            trigger=trigger,
        )


def lean(record: AgentPhaseCompleted) -> AgentPhaseCompleted:
    """The same record without its long texts, for a broker that refused the whole one as too large."""
    calls = tuple(
        ToolExecution(
            round=call.round,
            name=call.name,
            started_at=call.started_at,
            duration_ms=call.duration_ms,
            origin=call.origin,
            server=call.server,
        )
        for call in record.tool_executions
    )
    note = "prompts, texts and results are missing: the whole record was above the broker's limit"
    return msgspec.structs.replace(
        record,
        system_prompt="",
        user_prompt="",
        system_sections=(),
        user_sections=(),
        response="",
        round_narration=(),
        tool_executions=calls,
        notes=f"{record.notes[: limits.TURN_RECORD_TEXT_MAX_CHARS]}\n({note})".strip(),
    )
