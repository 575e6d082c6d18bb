"""The fence inside a turn: checked at each round and before each call, and what its closing makes of the turn."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from crewlet.base.errors import Fenced, StoppedByPerson
from crewlet.base.stop import StoppableFence
from crewlet.events.types import AgentTurnStopped
from crewlet.inbox import Decision
from crewlet.tools import CallContext, ToolResult
from tests.unit.turns.turn_kit import CountingFence, PlayedModel, PlayedTool, Stage, call, says, submits, trigger_from

pytestmark = pytest.mark.virtual_time


def two_calls() -> PlayedModel:
    return PlayedModel(says("", call("read"), call("write")), submits())


@pytest.mark.spec("S-074")
async def test_it_is_checked_when_a_round_begins_and_before_each_call() -> None:
    checks: list[int] = []
    fence = CountingFence()

    def note(_arguments: Mapping[str, object], _context: CallContext) -> ToolResult:
        checks.append(fence.checks)
        return ToolResult("ok")

    read, write = PlayedTool("read", note), PlayedTool("write", note)

    await Stage(executor=two_calls(), tools=[read, write]).run(fence=fence)

    assert checks == [2, 3]
    assert fence.checks == 7  # Three rounds, and four calls with the two that end a phase.


@pytest.mark.spec("S-074")
@pytest.mark.parametrize(("closes_at", "asked", "called"), [(1, 0, 0), (2, 1, 0), (3, 1, 1), (4, 1, 2), (6, 2, 2)])
async def test_a_closed_fence_lets_nothing_further_out(closes_at: int, asked: int, called: int) -> None:
    tools = [PlayedTool("read"), PlayedTool("write")]
    executor, reviewer = two_calls(), PlayedModel()
    stage = Stage(executor=executor, reviewer=reviewer, tools=tools)

    with pytest.raises(Fenced, match="the seat moved"):
        await stage.run(fence=CountingFence(closes_at))

    assert len(executor.requests) == asked
    assert sum(len(tool.calls) for tool in tools) == called
    assert reviewer.requests == []


async def test_a_turn_whose_seat_moved_is_told_as_redelivered_and_not_as_failed() -> None:
    stage = Stage(executor=two_calls(), tools=[PlayedTool("read"), PlayedTool("write")])

    with pytest.raises(Fenced):
        await stage.run(fence=CountingFence(3))

    told = stage.completed
    assert (told.decision, told.failed, told.redelivered, told.error_kind) == ("", False, True, "fenced")
    record = stage.phase("execute")
    assert (record.failed, record.error_kind) == (False, "fenced")
    assert [done.name for done in record.tool_executions] == ["read", "write"]
    assert record.tool_executions[1].error == "the seat moved"


async def test_a_tool_that_finds_the_fence_closed_ends_the_turn_too() -> None:
    stage = Stage(executor=two_calls(), tools=[PlayedTool("read", Fenced("moved meanwhile")), PlayedTool("write")])

    with pytest.raises(Fenced, match="moved meanwhile"):
        await stage.run()

    assert stage.completed.redelivered


async def test_a_moved_turn_that_wrote_outside_is_its_new_holders_all_the_same() -> None:
    stage = Stage(executor=two_calls(), tools=[PlayedTool("read", server="files"), PlayedTool("write")])
    executor = PlayedModel(
        says("", call("activate_tool", name="read"), call("read")), says("", call("write")), submits()
    )
    stage.executor = executor

    with pytest.raises(Fenced):
        await stage.run(fence=CountingFence(5))

    told = stage.completed
    assert (told.decision, told.failed, told.redelivered) == ("", False, True)


@pytest.mark.spec("E-131", "E-132", "S-080")
async def test_a_person_who_stops_the_turn_finishes_it_without_a_failure() -> None:
    stage = Stage(executor=two_calls(), tools=[PlayedTool("read"), PlayedTool("write")])
    stop = StoppedByPerson("stopped by ada", by="operator:ada", by_seat="ada", reason="wrong customer")

    outcome = await stage.run(fence=CountingFence(3, stop))

    assert (outcome.decision, outcome.finished) == (Decision.STOPPED, True)
    told = stage.completed
    assert (told.stopped, told.failed, told.redelivered, told.error) == (True, False, False, "stopped by ada")
    stopped = stage.only(AgentTurnStopped)
    assert (stopped.stopped_by, stopped.stopped_by_seat, stopped.reason) == ("operator:ada", "ada", "wrong customer")
    assert stopped.turn_id == told.turn_id


@pytest.mark.spec("S-080")
async def test_a_turn_that_moved_and_was_stopped_too_is_its_new_holders() -> None:
    stage = Stage(executor=two_calls(), tools=[PlayedTool("read"), PlayedTool("write")])
    both = StoppableFence(CountingFence(3), CountingFence(3, StoppedByPerson("stopped by ada")))

    with pytest.raises(Fenced, match="the seat moved") as caught:
        await stage.run(fence=both)

    assert not isinstance(caught.value, StoppedByPerson)
    assert stage.all_of(AgentTurnStopped) == []


async def test_a_moved_turn_on_its_last_delivery_is_not_said_to_come_back() -> None:
    stage = Stage()

    with pytest.raises(Fenced):
        await stage.run(trigger_from(headroom=0), fence=CountingFence(1))

    assert not stage.completed.redelivered
