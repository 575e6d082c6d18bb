"""The tasks of one ``delegate`` call: read whole, refused whole, and put in the order in which they can run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, cast

from crewlet.base import limits
from crewlet.base.errors import CrewletError
from crewlet.org import output_problems
from crewlet.turns.config import DelegationConfig
from crewlet.turns.setup import WorkerBrief

__all__ = [
    "DEFAULT_OUTPUT",
    "DelegatedTask",
    "TaskEnded",
    "TaskResult",
    "TaskStatus",
    "task_problems",
    "tasks_of",
    "waves",
]

DEFAULT_OUTPUT: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "result": {"type": "string", "description": "What you were asked for, complete."},
        "notes": {
            "type": "string",
            "description": "What the one who asked should know besides: doubts, gaps, sources.",
        },
    },
    "required": ["result"],
}
"""What a worker hands back where nothing else is asked of it."""

_TASK_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]*")


class TaskStatus(StrEnum):
    """How a task ended."""

    OK = "ok"
    NO_RESULT = "no_result"
    SKIPPED = "skipped_dependency_failed"
    NEVER_STARTED = "never_started"
    TIMED_OUT = "timed_out"
    BUDGET_EXHAUSTED = "budget_exhausted"
    CANCELLED = "cancelled"
    FAILED = "failed"


class TaskEnded(CrewletError):
    """A worker has to stop where it is."""

    def __init__(self, status: TaskStatus, why: str) -> None:
        self.status = status
        super().__init__(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegatedTask:
    """One task. ``system`` is its worker's own words, ``model`` a key or empty, ``wants`` what tools it asks for."""

    id: str
    prompt: str
    system: str
    worker: str = ""
    wants: tuple[str, ...] = ()
    model: str = ""
    max_turns: int
    output: Mapping[str, object] = field(default_factory=lambda: DEFAULT_OUTPUT)
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What came of a task: its ``output`` where it is ok, else ``said``, the worker's last words or the reason."""

    id: str
    status: TaskStatus
    output: Mapping[str, object] | None = None
    said: str = ""


def task_problems(
    given: Sequence[Mapping[str, Any]], workers: Mapping[str, WorkerBrief], config: DelegationConfig
) -> tuple[str, ...]:
    """What is wrong with a call's tasks, which fit the tool's schema; nothing is run unless nothing is."""
    if len(given) > config.max_tasks_per_call:
        return (f"{len(given)} tasks are too many: {config.max_tasks_per_call} are the most of one call",)
    ids = [str(task["id"]) for task in given]
    problems = [f"`{each}` is the id of two tasks" for each in dict.fromkeys(ids) if ids.count(each) > 1]
    for task in given:
        problems += [f"task `{task['id']}`: {said}" for said in _problems(task, ids, workers, config)]
    if not problems and waves(tasks_of(given, workers, config)) is None:
        problems.append("the tasks wait for one another in a circle: `after` must have a beginning")
    return tuple(problems)


def tasks_of(
    given: Sequence[Mapping[str, Any]], workers: Mapping[str, WorkerBrief], config: DelegationConfig
) -> tuple[DelegatedTask, ...]:
    """The tasks of a call in which nothing is wrong."""
    return tuple(_task(task, workers.get(str(task.get("worker", ""))), config) for task in given)


def waves(tasks: Sequence[DelegatedTask]) -> tuple[tuple[DelegatedTask, ...], ...] | None:
    """The tasks in waves, each after all that it waits for, in order; ``None`` where they go in a circle."""
    found: list[tuple[DelegatedTask, ...]] = []
    done: set[str] = set()
    left = list(tasks)
    while left:
        wave = tuple(task for task in left if done.issuperset(task.after))
        if not wave:
            return None
        found.append(wave)
        done.update(task.id for task in wave)
        left = [task for task in left if task.id not in done]
    return tuple(found)


def _problems(
    task: Mapping[str, Any], ids: Sequence[str], workers: Mapping[str, WorkerBrief], config: DelegationConfig
) -> Iterator[str]:
    name = str(task["id"])
    if not _TASK_ID.fullmatch(name) or len(name) > limits.WORKER_TASK_ID_MAX_CHARS:
        yield f"its id must be lower-case letters, digits, - and _, at most {limits.WORKER_TASK_ID_MAX_CHARS}"
    if ("worker" in task) == ("system_prompt" in task):
        yield "give either `worker` or `system_prompt`"
    elif "worker" in task and task["worker"] not in workers:
        yield f"no worker is called `{task['worker']}` (known: {', '.join(workers) or 'none'})"
    if task.get("max_turns", 1) < 1 or task.get("max_turns", 1) > config.max_turns_ceiling:
        yield f"`max_turns` must be 1 to {config.max_turns_ceiling}"
    for other in task.get("after", ()):
        if other not in ids:
            yield f"`after` names `{other}`, which is no task of this call"
    if "output" in task:
        yield from (f"`output` {said}" for said in output_problems(task["output"]))


def _task(task: Mapping[str, Any], template: WorkerBrief | None, config: DelegationConfig) -> DelegatedTask:
    output = task.get("output") or (template.output if template else {}) or DEFAULT_OUTPUT
    return DelegatedTask(
        id=str(task["id"]),
        prompt=str(task["prompt"]),
        system=template.system_prompt if template else str(task["system_prompt"]),
        worker=template.name if template else "",
        wants=tuple(task["tools"]) if "tools" in task else (template.tools if template else ()),
        model=str(task.get("model", "")) or (template.model if template else ""),
        max_turns=int(task.get("max_turns", 0)) or (template.max_turns if template else config.max_turns),
        output=cast("Mapping[str, object]", output),
        after=tuple(dict.fromkeys(task.get("after", ()))),
    )
