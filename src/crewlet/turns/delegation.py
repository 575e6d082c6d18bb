"""The workers of one ``delegate`` call: in waves, a few at a time, on a share of the tokens, within a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

import structlog

from crewlet.base.errors import Fenced, Unavailable
from crewlet.base.trace import Trace, child_of
from crewlet.events.types import SubagentBatched
from crewlet.llm import Model
from crewlet.turns.builtin_submit_result import SubmitResult
from crewlet.turns.config import DelegationConfig
from crewlet.turns.delegated_tasks import DelegatedTask, TaskResult, TaskStatus, waves
from crewlet.turns.meter import BudgetExhausted
from crewlet.turns.phase_plan import Host
from crewlet.turns.setup import TurnSetup
from crewlet.turns.turn_scope import TurnScope
from crewlet.turns.worker import Worker, task_plan, worker_scope
from crewlet.turns.worker_meter import ShareMeter, share_of
from crewlet.turns.worker_surface import WorkerSurface

__all__ = ["Delegation"]

_log = structlog.get_logger(__name__)


class Delegation:
    """Runs one call's tasks. ``branch`` names the call within its host, ``trace`` is the call's span."""

    def __init__(self, scope: TurnScope, setup: TurnSetup, model: Model, host: Host, branch: str, trace: Trace) -> None:
        self._scope = scope
        self._setup = setup
        self._model = model
        self._host = host
        self._branch = branch
        self._trace = trace
        self._config: DelegationConfig = scope.config.delegation
        self._results: dict[str, TaskResult] = {}
        self._broke: Fenced | Unavailable | BudgetExhausted | None = None
        self._tokens = 0

    async def run(self, tasks: Sequence[DelegatedTask]) -> Mapping[str, TaskResult]:
        """Every task's result, by its id. Raises ``Fenced``, ``Unavailable``, ``BudgetExhausted``, which end the turn.

        One that ends the turn lets the other workers come to the end of their round: a call is not torn off.
        """
        scope, clock = self._scope, self._scope.clock
        started_at, started_s = clock.now(), clock.elapsed_s()
        meter = ShareMeter(scope.meter, share_of(await scope.meter.remaining(), self._config.budget_fraction))
        ends_s = started_s + self._config.call_timeout_s
        at_once = asyncio.Semaphore(self._config.max_parallel)
        try:
            for wave in waves(tasks) or ():
                async with asyncio.TaskGroup() as group:
                    for task in wave:
                        group.create_task(self._one(task, meter, at_once, ends_s))
        finally:
            await self._tell(tasks, started_at, started_s)
        if self._broke is not None:
            raise self._broke
        return self._results

    async def _one(self, task: DelegatedTask, meter: ShareMeter, at_once: asyncio.Semaphore, ends_s: float) -> None:
        async with at_once:
            self._results[task.id] = self._unstarted(task, meter, ends_s) or await self._worked(task, meter, ends_s)

    def _unstarted(self, task: DelegatedTask, meter: ShareMeter, ends_s: float) -> TaskResult | None:
        """Why a task is not begun, if it is not. One that a predecessor had begun is gone on with."""
        if any(self._results[each].status is not TaskStatus.OK for each in task.after):
            return TaskResult(id=task.id, status=TaskStatus.SKIPPED, said="a task that it waits for brought nothing")
        if self._broke is not None or self._scope.clock.elapsed_s() >= ends_s:
            return TaskResult(
                id=task.id, status=TaskStatus.NEVER_STARTED, said="the call was over before its turn came"
            )
        began = self._scope.journal.reply_at(f"{self._host.path}/{self._branch}/{task.id}", 1) is not None
        if not began and meter.left is not None and meter.left < self._config.min_tokens_per_task:
            return TaskResult(
                id=task.id,
                status=TaskStatus.BUDGET_EXHAUSTED,
                said=f"{meter.left} tokens are left for it, {self._config.min_tokens_per_task} are the least",
            )
        return None

    async def _worked(self, task: DelegatedTask, meter: ShareMeter, ends_s: float) -> TaskResult:
        scope, clock = self._scope, self._scope.clock
        deadline_s = min(clock.elapsed_s() + self._config.task_timeout_s, ends_s)
        own = worker_scope(scope, task.id, child_of(self._trace, scope.ids), meter, deadline_s=deadline_s)
        own.halted = lambda: self._broke is not None
        try:
            submit = SubmitResult(task.output)
            surface = WorkerSurface(self._setup.tools, task.wants)
            model = self._setup.model_named(task.model) if task.model else self._model
            branch = f"{self._branch}/{task.id}"
            earlier = [self._results[each] for each in task.after]
            plan = task_plan(task, self._host, branch, model, surface, own, submit, earlier)
            return await Worker(task, plan, own, submit).run()
        except (Fenced, Unavailable, BudgetExhausted) as broke:
            self._broke = self._broke or broke
            return TaskResult(id=task.id, status=TaskStatus.CANCELLED, said=str(broke))
        except Exception as panic:  # noqa: BLE001 - supervisor: a worker's fault costs its task and not the turn
            _log.exception("worker_panicked", seat=scope.trigger.handle, turn=scope.events.turn_id, task=task.id)
            return TaskResult(id=task.id, status=TaskStatus.FAILED, said=f"{type(panic).__name__}: {panic}")
        finally:
            scope.absorb(own)
            self._tokens += own.usage.total

    async def _tell(self, tasks: Sequence[DelegatedTask], started_at: datetime, started_s: float) -> None:
        scope, host = self._scope, self._host
        await scope.events.tell(
            SubagentBatched(
                **scope.events.of_turn,
                phase=host.phase,
                iteration=host.iteration,
                round=host.round_num,
                graph={task.id: task.after for task in tasks},
                statuses={task.id: str(self._status(task)) for task in tasks},
                total_tokens=self._tokens,
                started_at=started_at,
                duration_ms=scope.elapsed_ms(started_s),
            ),
            self._trace,
        )

    def _status(self, task: DelegatedTask) -> TaskStatus:
        result = self._results.get(task.id)
        return TaskStatus.CANCELLED if result is None else result.status
