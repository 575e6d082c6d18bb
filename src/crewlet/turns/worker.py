"""One worker: a phase of its own on one task, within a round of the execution that asked for it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from crewlet.base import limits
from crewlet.base.trace import Trace
from crewlet.llm import ChainExhausted, Model, ModelFailure
from crewlet.tools import Tool
from crewlet.turns.builtin_submit_result import SUBMIT_RESULT, SubmitResult
from crewlet.turns.builtin_tool_discovery import ActivateTool, ListServerTools
from crewlet.turns.cost import NO_COST
from crewlet.turns.delegated_tasks import DelegatedTask, TaskEnded, TaskResult, TaskStatus
from crewlet.turns.delivery import CallsMade
from crewlet.turns.notes import NoteBox
from crewlet.turns.phase import Phase, PhaseBroke
from crewlet.turns.phase_plan import Host, PhasePlan
from crewlet.turns.phase_record import PhaseClosing, PhaseRecord
from crewlet.turns.repeats import RepeatedCall
from crewlet.turns.toolbox import Toolbox
from crewlet.turns.turn_scope import TurnScope
from crewlet.turns.worker_meter import ShareMeter
from crewlet.turns.worker_surface import WorkerSurface

__all__ = ["SUBAGENT", "Worker", "task_plan", "worker_scope"]

SUBAGENT: Final = "subagent"

_HOW: Final = f"""\
You work on one task for a colleague and then you are gone: nobody answers you, and only what you hand back with
`{SUBMIT_RESULT}` is read. You can look things up and think; you change nothing. If you cannot do it, hand back what you
found and what is missing."""


def worker_scope(scope: TurnScope, task_id: str, trace: Trace, meter: ShareMeter, *, deadline_s: float) -> TurnScope:
    """A scope of its own: it is charged in its own lane, reads no notes, and its calls prove nothing of the answer."""
    return replace(
        scope,
        worker=task_id,
        deadline_s=deadline_s,
        time_limit_s=None,
        events=replace(scope.events, trace=trace),
        meter=meter,
        notes=NoteBox(),
        activated={},
        calls_made=Counter(),
        made=CallsMade(),
        usage=replace(scope.usage, input_tokens=0, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0),
        cost=NO_COST,
        models={},
        provider_key="",
        reached_outside=False,
        open_phases=list[PhaseRecord](),
    )


def task_plan(
    task: DelegatedTask,
    host: Host,
    branch: str,
    model: Model,
    surface: WorkerSurface,
    scope: TurnScope,
    submit: SubmitResult,
    earlier: Sequence[TaskResult],
) -> PhasePlan:
    """The worker's phase; ``earlier`` are the results that its task waited for."""
    scope.activated.update(surface.wanted())
    pair: tuple[Tool, ...] = ()
    if surface.servers():
        pair = (ListServerTools(surface), ActivateTool(surface, scope.activated))
    return PhasePlan(
        phase=SUBAGENT,
        iteration=host.iteration,
        model=model,
        system=f"{task.system.strip()}\n\n## How you work\n{_HOW}",
        user=_user(task, earlier),
        toolbox=Toolbox(submit, [*pair, *surface.builtins()], surface=surface, activated=scope.activated),
        max_rounds=task.max_turns,
        host=host,
        branch=branch,
        task_id=task.id,
    )


class Worker:
    """Runs one task's phase to a result."""

    def __init__(self, task: DelegatedTask, plan: PhasePlan, scope: TurnScope, submit: SubmitResult) -> None:
        self._task = task
        self._plan = plan
        self._scope = scope
        self._submit = submit

    async def run(self) -> TaskResult:
        """Its result; what goes wrong with the task alone is one. Raises what ends the turn.

        Whatever happens, its phase is closed with what became of it.
        """
        result = TaskResult(id=self._task.id, status=TaskStatus.CANCELLED, said="the turn ended meanwhile")
        try:
            result = await self._result()
        finally:
            failed = result.status not in (TaskStatus.OK, TaskStatus.NO_RESULT)
            closing = PhaseClosing(
                decision=str(result.status),
                rescued=result.status is TaskStatus.NO_RESULT,
                failed=failed,
                error=result.said if failed else "",
                error_kind=str(result.status) if failed else "",
            )
            await self._scope.close_phases(closing)
        return result

    async def _result(self) -> TaskResult:
        task = self._task
        try:
            end = await Phase(self._plan, self._scope).run()
        except TaskEnded as ended:
            return TaskResult(id=task.id, status=ended.status, said=str(ended))
        except (PhaseBroke, ChainExhausted, ModelFailure, RepeatedCall) as broke:
            return TaskResult(id=task.id, status=TaskStatus.FAILED, said=str(broke))
        if self._submit.result is None:
            return TaskResult(id=task.id, status=TaskStatus.NO_RESULT, said=end.text)
        return TaskResult(id=task.id, status=TaskStatus.OK, output=self._submit.result)


def _user(task: DelegatedTask, earlier: Sequence[TaskResult]) -> str:
    parts = [f"## Task\n{task.prompt}"]
    for result in earlier:
        said = json.dumps(result.output, ensure_ascii=False, default=str)[: limits.WORKER_RESULT_MAX_CHARS]
        parts.append(f"## What the task `{result.id}` brought\n{said}")
    return "\n\n".join(parts)
