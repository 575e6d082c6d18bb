"""Delegation: parts of the work done by workers, side by side, within their own bounds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from typing import Any, cast

import pytest

from crewlet.base.errors import Fenced, Unavailable
from crewlet.events.types import AgentPhaseCompleted, SubagentBatched
from crewlet.inbox import Decision, Note
from crewlet.llm import ModelReply, ModelRequest, OnDelta, OnFallback, ToolResultMessage, UserMessage
from crewlet.tools import Annotations, Hint, ToolResult
from crewlet.turns import BudgetExhausted, DelegationConfig, Meter, RefusedWindow, TurnConfig, TurnSetup, WorkerBrief
from crewlet.turns.meter import Spent
from tests.unit.turns.turn_kit import (
    CountingFence,
    Line,
    PlayedModel,
    PlayedTool,
    Stage,
    call,
    failure,
    says,
    submits,
)

pytestmark = pytest.mark.virtual_time

READ_ONLY = Annotations(read_only=Hint.YES)
READER = WorkerBrief(name="reader", description="Reads.", system_prompt="You read.", max_turns=3)


def task(name: str, prompt: str = "look", **more: object) -> dict[str, object]:
    return {"id": name, "prompt": prompt, "worker": "reader", **more}


def delegates(*tasks: Mapping[str, object]) -> ModelReply:
    return says("", call("delegate", tasks=list(tasks)))


def hands_back(result: str = "found", **more: object) -> ModelReply:
    return says("", call("submit_result", result=result, **more))


class TaskModel(PlayedModel):
    """Answers by the task that its worker was given: plays that task's lines in order."""

    def __init__(self, **lines: Line | list[ModelReply]) -> None:
        super().__init__()
        self._by_task: dict[str, list[Line]] = {
            name: [*each] if isinstance(each, list) else [each] for name, each in lines.items()
        }
        self.running = 0
        self.most_running = 0
        self.pause_s = 0.0

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        self.requests.append(request)
        opening = request.messages[0]
        assert isinstance(opening, UserMessage)
        name = opening.text.removeprefix("## Task\n").split("\n")[0]
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            await asyncio.sleep(self.pause_s)
        finally:
            self.running -= 1
        line = self._by_task[name].pop(0)
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, ModelReply) else line(request)


class Purse:
    """A meter with so many tokens, which keeps each charge."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self.charges: list[Spent] = []

    async def admit(self) -> None:
        if self._tokens <= 0:
            raise BudgetExhausted((RefusedWindow(scope="org", period="day", label="d", spent=1, ceiling=1),))

    async def remaining(self) -> int | None:
        return self._tokens

    async def charge(self, spent: Spent, check: Callable[[], None]) -> None:
        self.charges.append(spent)
        self._tokens -= spent.usage.total


@dataclass
class WorkedStage(Stage):
    model: PlayedModel = field(default_factory=TaskModel)
    purse: Meter | None = None
    workers: Sequence[WorkerBrief] = (READER,)
    models: Mapping[str, PlayedModel] = field(default_factory=dict[str, PlayedModel])

    def setup(self) -> TurnSetup:
        setup = replaced(
            super().setup(),
            subagent=self.model,
            workers={each.name: each for each in self.workers},
            model_keys=tuple(self.models),
            model_named=self.models.__getitem__,
        )
        return setup if self.purse is None else replaced(setup, meter=self.purse)

    @property
    def told(self) -> list[dict[str, Any]]:
        """What the executor was told of its delegated tasks."""
        message = self.executor.requests[1].messages[-1]
        assert isinstance(message, ToolResultMessage)
        assert not message.is_error, message.content
        return cast("list[dict[str, Any]]", json.loads(message.content))

    @property
    def refusal(self) -> str:
        message = self.executor.requests[1].messages[-1]
        assert isinstance(message, ToolResultMessage)
        assert message.is_error
        return message.content

    @property
    def statuses(self) -> dict[str, str]:
        return self.only(SubagentBatched).statuses

    def worker_phases(self) -> list[AgentPhaseCompleted]:
        return [each for each in self.all_of(AgentPhaseCompleted) if each.phase == "subagent"]


def stage_of(model: PlayedModel, *tasks: Mapping[str, object], **more: Any) -> WorkedStage:  # noqa: ANN401
    config = more.pop("config", None)
    bounds = TurnConfig() if config is None else TurnConfig(delegation=config)
    executor = PlayedModel(delegates(*tasks), submits())
    return WorkedStage(executor=executor, model=model, config=bounds, **more)


async def test_the_results_of_the_tasks_come_back_in_the_order_of_the_tasks() -> None:
    stage = stage_of(TaskModel(a=hands_back("one"), b=hands_back("two")), task("first", "a"), task("second", "b"))

    outcome = await stage.run()

    assert outcome.decision is Decision.DONE
    assert stage.told == [
        {"id": "first", "status": "ok", "output": {"result": "one"}},
        {"id": "second", "status": "ok", "output": {"result": "two"}},
    ]


async def test_the_batch_is_told_with_its_graph_and_its_ends() -> None:
    stage = stage_of(TaskModel(a=hands_back(), b=hands_back()), task("x", "a"), task("y", "b", after=["x"]))

    await stage.run()

    batch = stage.only(SubagentBatched)
    assert (batch.phase, batch.iteration, batch.round) == ("execute", 1, 1)
    assert (batch.graph, batch.statuses) == ({"x": (), "y": ("x",)}, {"x": "ok", "y": "ok"})
    assert (batch.total_tokens, batch.started_at is not None) == (24, True)
    assert (stage.completed.subagent_count, stage.completed.subagent_tokens) == (2, 24)


async def test_each_worker_is_a_phase_under_its_host_and_charged_in_a_lane_of_its_own() -> None:
    purse = Purse(100_000)
    stage = stage_of(TaskModel(a=hands_back()), task("x", "a"), purse=purse)

    outcome = await stage.run()

    (record,) = stage.worker_phases()
    assert (record.host_phase, record.host_iteration, record.host_round, record.task_id) == ("execute", 1, 1, "x")
    assert (record.decision, record.total_tokens, record.max_rounds) == ("ok", 12, 3)
    assert [each.lane for each in purse.charges] == [
        outcome.turn_id,
        f"{outcome.turn_id}/x",
        outcome.turn_id,
        outcome.turn_id,
    ]
    assert stage.completed.input_tokens == 4 * 10


async def test_a_task_begins_after_those_it_waits_for_and_is_told_what_they_brought() -> None:
    model = TaskModel(a=hands_back("the source"), b=hands_back())
    stage = stage_of(model, task("y", "b", after=["x"]), task("x", "a"))

    await stage.run()

    second = model.requests[1].messages[0]
    assert isinstance(second, UserMessage)
    assert "## What the task `x` brought" in second.text
    assert "the source" in second.text


async def test_what_waits_for_a_failed_task_is_skipped_and_the_rest_goes_on() -> None:
    model = TaskModel(a=failure(), c=hands_back())
    stage = stage_of(model, task("x", "a"), task("y", "b", after=["x"]), task("z", "c"))

    await stage.run()

    assert stage.statuses == {"x": "failed", "y": "skipped_dependency_failed", "z": "ok"}


async def test_no_more_workers_run_at_once_than_the_company_allows() -> None:
    model = TaskModel(**{name: hands_back() for name in "abcde"})
    model.pause_s = 1.0
    stage = stage_of(model, *[task(name, name) for name in "abcde"], config=DelegationConfig(max_parallel=2))

    await stage.run()

    assert model.most_running == 2
    assert set(stage.statuses.values()) == {"ok"}


async def test_a_worker_that_never_hands_back_has_no_result_but_its_words() -> None:
    model = TaskModel(a=[says("I think."), says("It is blue."), says("Yes.")])
    stage = stage_of(model, task("x", "a"))

    await stage.run()

    assert stage.told == [{"id": "x", "status": "no_result", "said": "Yes."}]


async def test_a_worker_that_is_too_slow_is_timed_out_and_what_had_no_turn_was_never_started() -> None:
    model = TaskModel(a=hands_back(), b=hands_back())
    model.pause_s = 50.0
    config = DelegationConfig(max_parallel=1, task_timeout_s=10, call_timeout_s=10)
    stage = stage_of(model, task("x", "a"), task("y", "b"), config=config)

    outcome = await stage.run()

    assert stage.statuses == {"x": "timed_out", "y": "never_started"}
    assert outcome.decision is Decision.DONE


async def test_a_slow_tool_does_not_outlast_its_workers_time() -> None:
    class Slow(PlayedTool):
        async def call(self, arguments: Mapping[str, object], context: Any) -> ToolResult:  # noqa: ANN401
            await asyncio.sleep(10_000)
            return ToolResult("late")

    stage = stage_of(TaskModel(a=says("", call("look"))), task("x", "a"), tools=[Slow("look")])

    await stage.run()

    assert stage.statuses == {"x": "timed_out"}
    assert stage.only(SubagentBatched).duration_ms == DelegationConfig().task_timeout_s * 1000


async def test_the_workers_of_a_call_share_a_fraction_of_what_is_left() -> None:
    looks = [says("", call("look", n=n)) for n in range(9)]
    config = DelegationConfig(budget_fraction=0.2, min_tokens_per_task=10)
    stage = stage_of(
        TaskModel(a=looks, b=hands_back()),
        task("x", "a"),
        task("y", "b", after=[]),
        config=replaced(config, max_parallel=1),
        purse=Purse(12 + 100),
        tools=[PlayedTool("look")],
        workers=[replaced(READER, max_turns=9)],
    )

    outcome = await stage.run()

    assert stage.statuses == {"x": "budget_exhausted", "y": "budget_exhausted"}
    assert len(stage.worker_phases()[0].rounds) == 2
    assert outcome.decision is Decision.DONE


async def test_a_seat_whose_own_budget_runs_out_in_a_worker_ends_the_turn() -> None:
    class Broke(Purse):
        async def admit(self) -> None:
            if len(self.charges) > 1:
                raise BudgetExhausted((RefusedWindow(scope="org", period="day", label="d", spent=1, ceiling=1),))

    model = TaskModel(a=[says("", call("look")), hands_back()])
    stage = stage_of(model, task("x", "a"), purse=Broke(10_000), tools=[PlayedTool("look")])

    outcome = await stage.run()

    assert (outcome.finished, outcome.error_kind) == (False, "budget_exhausted")
    assert len(stage.executor.requests) == 1


async def test_a_fault_in_one_worker_is_its_own_tasks_failure() -> None:
    stage = stage_of(TaskModel(a=RuntimeError("a defect"), b=hands_back()), task("x", "a"), task("y", "b"))

    outcome = await stage.run()

    assert outcome.decision is Decision.DONE
    assert stage.statuses == {"x": "failed", "y": "ok"}
    assert "a defect" in stage.told[0]["said"]


async def test_a_store_that_is_out_of_reach_in_a_worker_breaks_the_turn() -> None:
    look = PlayedTool("look", Unavailable("no store"))
    stage = stage_of(TaskModel(a=says("", call("look"))), task("x", "a"), tools=[look])

    outcome = await stage.run()

    assert (outcome.finished, outcome.error_kind) == (False, "unavailable")
    assert stage.statuses == {"x": "cancelled"}


async def test_what_ends_the_turn_in_one_worker_lets_the_others_end_their_round_and_no_more() -> None:
    model = TaskModel(a=says("", call("look")), b=[says("", call("read", n=n)) for n in range(3)])
    purse = Purse(100_000)
    look, read = PlayedTool("look", Unavailable("no store")), PlayedTool("read")
    stage = stage_of(model, task("x", "a"), task("y", "b"), tools=[look, read], purse=purse)

    await stage.run()

    assert stage.statuses == {"x": "cancelled", "y": "cancelled"}
    assert len(model.requests) == 2
    assert [each.lane.partition("/")[2] for each in purse.charges] == ["", "x", "y"]


async def test_a_worker_is_fenced_like_its_agent() -> None:
    model = TaskModel(a=[says("", call("look")), hands_back()])
    stage = stage_of(model, task("x", "a"), tools=[PlayedTool("look")])

    with pytest.raises(Fenced):
        await stage.run(fence=CountingFence(closes_at=5))

    assert len(model.requests) == 1
    assert stage.worker_phases()[0].decision == "cancelled"


async def test_a_worker_is_offered_nothing_that_writes_or_starts_others() -> None:
    model = TaskModel(a=[says("", call("list_mcp_server_tools", server="wiki")), hands_back()])
    tools = [
        PlayedTool("look"),
        PlayedTool("publish", annotations=Annotations(open_world=Hint.YES)),
        PlayedTool("a2a_ask"),
        PlayedTool("read_page", server="wiki", annotations=READ_ONLY),
        PlayedTool("write_page", server="wiki"),
        PlayedTool("post", server="chat"),
    ]
    stage = stage_of(model, task("x", "a"), tools=tools)

    await stage.run()

    offered = {spec.name for spec in model.requests[0].tools}
    assert offered == {"submit_result", "list_mcp_server_tools", "activate_tool", "look"}
    assert stage.worker_phases()[0].tool_executions[0].result == "- read_page: The tool read_page."


async def test_tools_that_a_task_names_are_its_own_from_its_first_round() -> None:
    model = TaskModel(a=[says("", call("read_page")), hands_back()])
    page = PlayedTool("read_page", server="wiki", annotations=READ_ONLY)
    stage = stage_of(model, task("x", "a", tools=["read_page"]), tools=[page, PlayedTool("look")])

    await stage.run()

    assert len(page.calls) == 1
    assert "look" not in {spec.name for spec in model.requests[0].tools}


async def test_a_task_may_say_its_own_words_output_model_and_rounds() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    other = TaskModel(a=[hands_back(), says("", call("submit_result", n=3))])
    own: dict[str, object] = {
        "id": "x",
        "prompt": "a",
        "system_prompt": "You count.",
        "output": schema,
        "model": "small",
    }
    stage = stage_of(TaskModel(), {**own, "max_turns": 5}, models={"small": other})

    await stage.run()

    assert stage.told == [{"id": "x", "status": "ok", "output": {"n": 3}}]
    assert other.requests[0].system.startswith("You count.")
    assert stage.worker_phases()[0].max_rounds == 5


@pytest.mark.parametrize(
    ("tasks", "told"),
    [
        ([task("x"), task("x")], "`x` is the id of two tasks"),
        ([task("X y")], "its id must be"),
        ([{"id": "x", "prompt": "a"}], "either `worker` or `system_prompt`"),
        ([{"id": "x", "prompt": "a", "worker": "nobody"}], "no worker is called `nobody` (known: reader)"),
        ([task("x", after=["y"])], "`after` names `y`"),
        ([task("x", after=["y"]), task("y", after=["x"])], "in a circle"),
        ([task("x", max_turns=41)], "`max_turns` must be 1 to 40"),
        ([task("x", tools=["post"])], "`post` cannot be given to a worker"),
        ([task("x", model="big")], "no model is called `big`"),
        ([task("x", output={"type": "string"})], "`output` must be an object"),
        ([task(f"x{n}") for n in range(9)], "9 tasks are too many"),
        ([], "`tasks` is empty"),
    ],
)
async def test_a_call_with_anything_wrong_runs_nothing(tasks: list[dict[str, object]], told: str) -> None:
    model = TaskModel()
    stage = stage_of(model, *tasks, tools=[PlayedTool("post", server="chat")])

    await stage.run()

    assert told in stage.refusal
    assert model.requests == []
    assert stage.all_of(SubagentBatched) == []


async def test_notes_to_the_turn_are_not_read_by_its_workers() -> None:
    model = TaskModel(a=hands_back())
    stage = stage_of(model, task("x", "a"))

    def first(_request: ModelRequest) -> ModelReply:
        stage.notes.post(Note(note_id="n", text="be quick", by="ada"))
        return delegates(task("x", "a"))

    stage.executor = PlayedModel(first, submits())
    await stage.run()

    assert all("be quick" not in str(message) for message in model.requests[0].messages)
    assert any("be quick" in str(message) for message in stage.executor.requests[1].messages)


async def test_the_prompt_names_the_workers_and_the_call_that_uses_them() -> None:
    stage = stage_of(TaskModel(a=hands_back()), task("x", "a"))

    await stage.run()

    system = stage.executor.requests[0].system
    assert "## Workers\n- reader: Reads." in system
    assert "Built in: `submit_work`, `delegate`" in system
    assert "workers" in [each.key for each in stage.phase("execute").system_sections]


async def test_a_seat_without_a_model_for_workers_is_not_offered_any() -> None:
    stage = Stage()

    await stage.run()

    assert "delegate" not in {spec.name for spec in stage.executor.requests[0].tools}
