"""What the phases of one running turn share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
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
from crewlet.turns.delegated_tasks import TaskEnded, TaskStatus
from crewlet.turns.delivery import CallsMade
from crewlet.turns.meter import Meter
from crewlet.turns.notes import NoteBox
from crewlet.turns.phase_record import PhaseClosing, PhaseRecord, lean
from crewlet.turns.time_limit import TimeSpent
from crewlet.turns.turn_events import TurnEvents

__all__ = ["TurnScope"]


def _never() -> bool:
    return False


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
    subagents: int = 0
    subagent_tokens: int = 0
    worker: str = ""
    deadline_s: float | None = None
    began_s: float | None = None
    time_limit_s: float | None = None
    halted: Callable[[], bool] = field(default=_never)
    open_phases: list[PhaseRecord] = field(default_factory=list[PhaseRecord])

    @property
    def open_phase(self) -> PhaseRecord | None:
        """The innermost phase that is open."""
        return self.open_phases[-1] if self.open_phases else None

    async def close_phase(self, closing: PhaseClosing, *, is_final: bool = False) -> None:
        """Publish the record of the innermost open phase, if any; without its long texts where it is too large.

        ``is_final``: whoever goes on with the turn comes to this very end of it, failed or not.
        """
        if not self.open_phases:
            return
        record = self.open_phases.pop()
        completed = record.completed(
            closing, self.events.of_turn, self.summary, duration_ms=self.elapsed_ms(record.started_s)
        )
        # The process may end before anything later is on record; its successor would tell a whole phase again.
        once = "" if closing.failed and not is_final else record.plan.path
        await self.events.tell(completed, record.trace, smaller=lean, once=once)

    async def close_phases(self, closing: PhaseClosing) -> None:
        """The same of all that are open, the innermost first."""
        while self.open_phases:
            await self.close_phase(closing)

    @property
    def lane(self) -> str:
        """What the turn's charges are known by, and a worker's apart from it."""
        return f"{self.events.turn_id}/{self.worker}" if self.worker else self.events.turn_id

    def check(self) -> None:
        """Before each round. Raises ``Fenced``, and ``TaskEnded`` for a worker that is halted or out of time.

        ``TimeSpent`` where the turn has a time limit and is past it.
        """
        self.fence.check()
        self._check_time()
        if self.halted():
            raise TaskEnded(TaskStatus.CANCELLED, "the turn ends")
        if self.deadline_s is not None and self.clock.elapsed_s() >= self.deadline_s:
            raise TaskEnded(TaskStatus.TIMED_OUT, "it was not done in time")

    def _check_time(self) -> None:
        """Its time begins with the first round of its work, which it has whatever the limit."""
        limit_s, now_s = self.time_limit_s, self.clock.elapsed_s()
        if limit_s is None or not self.iterations:
            return
        if self.began_s is None:
            self.began_s = now_s
        elif now_s - self.began_s >= limit_s:
            raise TimeSpent(limit_s)

    def within_s(self, bound_s: float) -> float:
        """``bound_s``, or what is left until the deadline."""
        if self.deadline_s is None:
            return bound_s
        return max(min(bound_s, self.deadline_s - self.clock.elapsed_s()), 0.0)

    def absorb(self, worker: TurnScope) -> None:
        """Count what a worker of this turn spent and proved."""
        self.usage += worker.usage
        self.cost += worker.cost
        self.reached_outside = self.reached_outside or worker.reached_outside
        self.subagents += 1
        self.subagent_tokens += worker.usage.total

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
