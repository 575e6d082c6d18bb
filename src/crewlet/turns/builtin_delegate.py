"""``delegate``: hands parts of the work to workers and waits for what they bring."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from crewlet.base import limits
from crewlet.llm import Model
from crewlet.tools import CallContext, ToolResult, ToolRow
from crewlet.turns.delegated_tasks import TaskResult, TaskStatus, task_problems, tasks_of
from crewlet.turns.delegation import Delegation
from crewlet.turns.phase_plan import Host
from crewlet.turns.setup import TurnSetup
from crewlet.turns.turn_scope import TurnScope
from crewlet.turns.worker_surface import DELEGATE, WorkerSurface

__all__ = ["Delegate"]

_ROW: Final = ToolRow(
    name=DELEGATE,
    description=(
        "Have workers do parts of your work, side by side, and wait for their results. A worker knows nothing but what "
        "its task says, can look things up with your tools, and changes nothing anywhere: what has to be written or "
        "sent is yours. Worth it for several independent searches or readings, not for one small step."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "tasks": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string", "description": "A short name, such as `find-sources`."},
                        "prompt": {"type": "string", "description": "All that the worker needs to know."},
                        "worker": {"type": "string", "description": "A worker of your company."},
                        "system_prompt": {
                            "type": "string",
                            "description": "Who the worker is, where none of your company's fits.",
                        },
                        "tools": {"type": "array", "items": {"type": "string"}},
                        "model": {"type": "string"},
                        "max_turns": {"type": "integer"},
                        "output": {"type": "object", "description": "JSON Schema of what it hands back."},
                        "after": {
                            "type": "array",
                            "items": {"type": "string"},
                            "description": "Ids of tasks whose results it needs.",
                        },
                    },
                    "required": ["id", "prompt"],
                },
            }
        },
        "required": ["tasks"],
    },
)


class Delegate:
    """The tool of one execute phase, which ``path`` and ``iteration`` name."""

    def __init__(self, scope: TurnScope, setup: TurnSetup, model: Model, *, phase: str, iteration: int) -> None:
        self._scope = scope
        self._setup = setup
        self._model = model
        self._phase = phase
        self._iteration = iteration

    @property
    def row(self) -> ToolRow:
        """How the model is told of it."""
        return _ROW

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """Every task's status and result, in the order in which they were given. Raises what ends a turn."""
        given = cast("Sequence[Mapping[str, Any]]", arguments["tasks"])
        config, workers = self._scope.config.delegation, self._setup.workers
        problems = [*task_problems(given, workers, config), *self._unknown(given)]
        if not given or problems:
            return ToolResult(f"nothing was run. {'; '.join(problems) or '`tasks` is empty'}", is_error=True)
        tasks = tasks_of(given, workers, config)
        host = Host(f"{self._phase}/{self._iteration}", self._phase, self._iteration, self._round())
        branch = f"{DELEGATE}/{context.ordinal}"
        delegation = Delegation(self._scope, self._setup, self._model, host, branch, context.trace)
        results = await delegation.run(tasks)
        return ToolResult(json.dumps([_told(results[task.id]) for task in tasks], ensure_ascii=False, default=str))

    def _unknown(self, given: Sequence[Mapping[str, Any]]) -> list[str]:
        """Tools and models that a task names and cannot have; of those of a template a worker gets what there is."""
        surface = WorkerSurface(self._setup.tools)
        problems: list[str] = []
        for task in given:
            problems += [
                f"task `{task['id']}`: `{tool}` cannot be given to a worker"
                for tool in task.get("tools", ())
                if surface.find(tool) is None
            ]
            if task.get("model") and task["model"] not in self._setup.model_keys:
                known = ", ".join(self._setup.model_keys)
                problems.append(f"task `{task['id']}`: no model is called `{task['model']}` (known: {known})")
        return problems

    def _round(self) -> int:
        record = self._scope.open_phase
        return record.rounds[-1].round if record is not None and record.rounds else 0


def _told(result: TaskResult) -> dict[str, object]:
    told: dict[str, object] = {"id": result.id, "status": str(result.status)}
    if result.status is TaskStatus.OK:
        told["output"] = result.output
    elif result.said:
        told["said"] = result.said[-limits.WORKER_RESULT_MAX_CHARS :]
    return told
