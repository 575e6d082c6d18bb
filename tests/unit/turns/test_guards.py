"""Guards: what ends a turn however its model would go on."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base.ids import TurnId
from crewlet.events.types import TaskAssigned, TurnGuardBreach
from crewlet.inbox import Decision, NoJournal, Opening, Reply, Trigger
from crewlet.llm import ModelReply, ModelRequest, OnDelta, OnFallback, ToolCall
from crewlet.turns import TurnConfig
from tests.unit.turns.turn_kit import (
    PlayedModel,
    PlayedTool,
    Stage,
    call,
    event_of,
    reviews,
    says,
    submits,
    trigger_from,
)

pytestmark = pytest.mark.virtual_time


def again(notes: str = "once more") -> PlayedModel:
    return PlayedModel(*[reviews("self_iterate", notes=notes)] * 5)


@pytest.mark.spec("E-137")
async def test_the_third_return_is_the_last() -> None:
    stage = Stage(executor=PlayedModel(*[submits(f"try {n}") for n in range(5)]), reviewer=again())

    outcome = await stage.run()

    assert (outcome.decision, outcome.finished, outcome.error_kind) == (Decision.FAILED, True, "max_iter")
    assert stage.only(TurnGuardBreach).kind == "max_iter"
    assert (stage.completed.iterations, stage.completed.redelivered, outcome.artifact) == (3, False, "try 2")


@pytest.mark.spec("E-137")
async def test_the_same_result_sent_back_twice_is_a_stall() -> None:
    stage = Stage(executor=PlayedModel(*[submits("the same")] * 5), reviewer=again())

    outcome = await stage.run()

    assert (outcome.finished, outcome.error_kind) == (True, "stall")
    assert stage.only(TurnGuardBreach).turn_id == outcome.turn_id
    assert stage.completed.iterations == 2


async def test_going_back_and_forth_between_two_results_is_a_stall_too() -> None:
    tries = PlayedModel(submits("a"), submits("b"), submits("a"))
    stage = Stage(executor=tries, reviewer=again(), config=TurnConfig(max_iterations=9))

    outcome = await stage.run()

    assert (outcome.error_kind, stage.completed.iterations) == ("stall", 3)


@pytest.mark.spec("E-137")
async def test_an_ask_that_is_too_deep_runs_no_phase() -> None:
    stage = Stage(executor=PlayedModel(), reviewer=PlayedModel())

    outcome = await stage.run(trigger_from(depth=3))

    assert (outcome.decision, outcome.finished, outcome.error_kind) == (Decision.FAILED, True, "depth_cap")
    assert stage.types == ["agent_turn_started", "turn.guard_breach", "agent_turn_completed"]


async def test_one_below_the_depth_limit_runs() -> None:
    outcome = await Stage().run(trigger_from(depth=2))

    assert outcome.decision is Decision.DONE


class SlowModel(PlayedModel):
    """Takes 100 seconds for a reply."""

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        await asyncio.sleep(100)
        return await super().complete(request)


class GoneOnWith(NoJournal):
    """The rest of a turn that another process began."""

    @property
    def resumed(self) -> bool:
        return True


class SlowToOpen(NoJournal):
    """Has the turn wait for longer than its limit before its first round."""

    async def open(self, opening: Opening) -> Opening:
        await asyncio.sleep(10)
        return opening


def looks(times: int) -> list[ModelReply]:
    return [says("", call("look", n=n)) for n in range(times)]


def scheduled(*, timeout_s: int) -> Trigger:
    task = TaskAssigned(agent_handle="ceo", task="Report", assigned_by="scheduler", timeout_seconds=timeout_s)
    return trigger_from(event_of(task), reply=Reply.NONE)


@pytest.mark.spec("E-137")
async def test_a_scheduled_task_that_has_had_its_time_is_ended_between_two_rounds() -> None:
    stage = Stage(executor=SlowModel(*looks(5)), tools=[PlayedTool("look")])

    outcome = await stage.run(scheduled(timeout_s=150))

    assert (outcome.decision, outcome.finished, outcome.error_kind) == (Decision.FAILED, True, "scheduled_timeout")
    assert (stage.only(TurnGuardBreach).kind, len(stage.executor.requests)) == ("scheduled_timeout", 2)
    record = stage.phase("execute")
    assert (record.failed, record.error_kind, len(record.tool_executions)) == (True, "scheduled_timeout", 2)


async def test_the_first_round_of_a_scheduled_task_runs_whatever_its_limit() -> None:
    stage = Stage(executor=SlowModel(submits()), journal=SlowToOpen(TurnId("t1")))

    outcome = await stage.run(scheduled(timeout_s=1))

    assert outcome.error_kind == "scheduled_timeout"
    assert stage.phase("execute").decision == "delivered"


@pytest.mark.parametrize(
    ("trigger", "journal"),
    [
        (scheduled(timeout_s=0), None),
        (scheduled(timeout_s=150), GoneOnWith(TurnId("t1"))),
        (trigger_from(), None),
    ],
    ids=["without a limit", "gone on with", "other work"],
)
async def test_all_other_work_may_take_as_long_as_it_needs(trigger: Trigger, journal: NoJournal | None) -> None:
    stage = Stage(executor=SlowModel(*looks(3), submits()), tools=[PlayedTool("look")], journal=journal)

    assert (await stage.run(trigger)).decision is Decision.DONE


def poll(n: int = 0) -> ModelReply:
    return says("", call("poll", n=n))


async def test_the_same_call_over_and_over_is_refused_and_then_ends_the_turn() -> None:
    tool = PlayedTool("poll")
    stage = Stage(executor=PlayedModel(*[poll()] * 20), tools=[tool])

    outcome = await stage.run()

    assert (outcome.decision, outcome.finished, outcome.error_kind) == (Decision.FAILED, True, "repeated_call")
    assert stage.only(TurnGuardBreach).kind == "repeated_call"
    assert (len(tool.calls), len(stage.executor.requests)) == (5, 8)
    record = stage.phase("execute")
    assert (record.failed, record.error_kind) == (True, "repeated_call")
    assert "not run: you called `poll` with these very arguments 5 times" in record.tool_executions[5].error


async def test_a_model_that_heeds_the_word_goes_on() -> None:
    executor = PlayedModel(*[poll()] * 7, submits())

    outcome = await Stage(executor=executor, tools=[PlayedTool("poll")]).run()

    assert outcome.decision is Decision.DONE


async def test_two_calls_in_turn_are_a_circle_too() -> None:
    stage = Stage(executor=PlayedModel(*[poll(1), poll(2)] * 10), tools=[PlayedTool("poll")])

    outcome = await stage.run()

    assert outcome.error_kind == "repeated_call"


async def test_the_same_call_with_something_new_between_is_work() -> None:
    changing = [each for n in range(8) for each in (poll(), says("", call("change", n=n)))]
    tool = PlayedTool("poll")
    stage = Stage(executor=PlayedModel(*changing, submits()), tools=[tool, PlayedTool("change")])

    outcome = await stage.run()

    assert (outcome.decision, len(tool.calls)) == (Decision.DONE, 8)


async def test_calls_whose_arguments_cannot_be_read_are_a_circle_too() -> None:
    garbled = ToolCall("c", "poll", None, raw="{oops")
    stage = Stage(executor=PlayedModel(*[says("", garbled)] * 20), tools=[PlayedTool("poll")])

    outcome = await stage.run()

    assert outcome.error_kind == "repeated_call"


async def test_a_reply_full_of_the_same_call_is_ended_within_it() -> None:
    tool = PlayedTool("poll")
    stage = Stage(executor=PlayedModel(says("", *[call("poll")] * 30)), tools=[tool])

    outcome = await stage.run()

    assert (outcome.error_kind, len(tool.calls)) == ("repeated_call", 5)
