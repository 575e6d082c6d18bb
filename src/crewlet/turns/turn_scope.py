"""What the phases of one running turn share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from crewlet.base.clock import Clock
from crewlet.base.fence import Fence
from crewlet.base.ids import Ids
from crewlet.base.trace import Trace, child_of
from crewlet.events.types import TriggerSummary
from crewlet.inbox import Trigger, TurnJournal
from crewlet.llm import Usage
from crewlet.tools import CallContext, Tool
from crewlet.tracing import Tracer
from crewlet.turns.config import TurnConfig
from crewlet.turns.cost import NO_COST, Cost
from crewlet.turns.delivery import CallsMade
from crewlet.turns.meter import Meter
from crewlet.turns.notes import NoteBox
from crewlet.turns.phase_record import PhaseClosing, PhaseRecord, lean
from crewlet.turns.turn_events import TurnEvents

__all__ = ["TurnScope"]


@dataclass(slots=True, kw_only=True)
class TurnScope:
    """One turn while it runs, in one task: its right to act, its record so far, and what its calls have reached.

    ``open_phases`` are the phases whose record has not been published yet, each within the one before; whoever ends the
    turn publishes them.
    """

    trigger: Trigger
    summary: TriggerSummary
    fence: Fence
    events: TurnEvents
    config: TurnConfig
    clock: Clock
    ids: Ids
    tracer: Tracer
    journal: TurnJournal
    meter: Meter
    notes: NoteBox
    activated: dict[str, Tool] = field(default_factory=dict[str, Tool])
    calls_made: Counter[str] = field(default_factory=Counter[str])
    made: CallsMade = field(default_factory=CallsMade)
    usage: Usage = field(default_factory=Usage)
    cost: Cost = NO_COST
    models: dict[str, str] = field(default_factory=dict[str, str])
    provider_key: str = ""
    iterations: int = 0
    reached_outside: bool = False
    open_phases: list[PhaseRecord] = field(default_factory=list[PhaseRecord])

    @property
    def open_phase(self) -> PhaseRecord | None:
        """The innermost phase that is open."""
        return self.open_phases[-1] if self.open_phases else None

    async def close_phase(self, closing: PhaseClosing) -> None:
        """Publish the record of the innermost open phase, if any; without its long texts where it is too large."""
        if not self.open_phases:
            return
        record = self.open_phases.pop()
        completed = record.completed(
            closing, self.events.of_turn, self.summary, duration_ms=self.elapsed_ms(record.started_s)
        )
        await self.events.tell(completed, record.trace, smaller=lean)

    async def close_phases(self, closing: PhaseClosing) -> None:
        """The same of all that are open, the innermost first."""
        while self.open_phases:
            await self.close_phase(closing)

    @property
    def lane(self) -> str:
        """What the turn's charges are known by."""
        return self.events.turn_id

    def context_for(self, tool: str, phase: Trace) -> CallContext:
        """The context of the next call of ``tool``, and the call counted."""
        ordinal = self.calls_made[tool]
        self.calls_made[tool] += 1
        trigger = self.trigger
        return CallContext(
            handle=trigger.handle,
            turn_id=self.events.turn_id,
            work_key=trigger.work_key,
            fence=self.fence,
            trace=child_of(phase, self.ids),
            ordinal=ordinal,
            delegation_depth=trigger.delegation_depth,
            delegation_chain=trigger.delegation_chain,
            task=trigger.task,
            answers_channel=trigger.answers_channel,
            reply=str(trigger.reply),
        )

    def elapsed_ms(self, since_s: float) -> int:
        """Whole milliseconds since ``since_s`` on the clock that never goes back."""
        return int((self.clock.elapsed_s() - since_s) * 1000)
