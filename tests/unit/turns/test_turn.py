"""A turn that goes well: from a trigger through execute and review to an artifact."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from crewlet.inbox import Decision, Reply
from crewlet.llm import AssistantMessage, ToolCall, ToolResultMessage, UserMessage
from crewlet.tools import Annotations, CallContext, Hint, ToolResult
from tests.unit.turns.turn_kit import (
    CountingFence,
    PlayedModel,
    PlayedTool,
    Stage,
    ask_tool,
    call,
    reviews,
    says,
    submits,
    trigger_from,
)

pytestmark = pytest.mark.virtual_time


async def test_a_reviewed_summary_is_the_artifact() -> None:
    stage = Stage(executor=PlayedModel(submits("Build the bridge.")))

    outcome = await stage.run()

    assert (outcome.decision, outcome.finished, outcome.artifact) == (Decision.DONE, True, "Build the bridge.")
    assert stage.completed.artifact == "Build the bridge."


async def test_the_reviews_final_artifact_replaces_the_summary() -> None:
    stage = Stage(reviewer=PlayedModel(reviews(final_artifact="Build the bridge first.")))

    outcome = await stage.run()

    assert outcome.artifact == "Build the bridge first."


async def test_a_rounds_calls_run_in_order_and_their_results_follow_the_reply() -> None:
    ran: list[str] = []

    def one(_arguments: Mapping[str, object], _context: CallContext) -> ToolResult:
        ran.append("first")
        return ToolResult("one")

    def two(_arguments: Mapping[str, object], _context: CallContext) -> ToolResult:
        ran.append("second")
        return ToolResult("")

    first, second = PlayedTool("first", one), PlayedTool("second", two)
    executor = PlayedModel(says("Looking.", call("first"), call("second")), submits())
    stage = Stage(executor=executor, tools=[first, second])

    await stage.run()

    assert ran == ["first", "second"]
    asked, *rest = executor.requests[1].messages
    assert asked == executor.requests[0].messages[0]
    assert isinstance(rest[0], AssistantMessage)
    assert rest[1:] == [
        ToolResultMessage("call-first-0-0", "first", "one"),
        ToolResultMessage("call-second-0-1", "second", "(no output)"),
    ]


async def test_a_call_knows_for_whom_it_is_made_and_how_often_its_tool_was_called() -> None:
    tool = PlayedTool("look")
    stage = Stage(executor=PlayedModel(says("", call("look"), call("look")), submits()), tools=[tool])

    outcome = await stage.run(trigger_from(depth=2))

    contexts = [context for _, context in tool.calls]
    assert [context.ordinal for context in contexts] == [0, 1]
    assert {(c.handle, c.turn_id, c.work_key, c.delegation_depth, c.task, c.reply) for c in contexts} == {
        ("ceo", outcome.turn_id, "work-1", 2, "what now?", "engine")
    }
    assert len({context.trace.span_id for context in contexts}) == 2
    span = next(event.span_id for event in stage.published if event.type == "agent_phase_started")
    assert {(context.trace.trace_id, context.trace.parent_span_id) for context in contexts} == {("a" * 32, span)}


async def test_review_sends_back_with_notes_and_the_next_iteration_knows_what_was_done() -> None:
    look = PlayedTool("look", ToolResult("seen"))
    executor = PlayedModel(says("", call("look", where="here")), submits("first try"), submits("second try"))
    reviewer = PlayedModel(reviews("self_iterate", notes="Add the price.", completed_work="Looked."), reviews())
    stage = Stage(executor=executor, reviewer=reviewer, tools=[look])

    outcome = await stage.run()

    assert (outcome.decision, outcome.artifact) == (Decision.DONE, "second try")
    assert stage.completed.iterations == 2
    again = executor.requests[2].messages
    assert len(again) == 1
    assert isinstance(again[0], UserMessage)
    for told in ("Add the price.", "first try", "look(where=here): ok", "Looked."):
        assert told in again[0].text
    assert executor.requests[2].system == executor.requests[0].system


async def test_the_reviewer_sees_the_work_and_the_record_and_has_one_tool() -> None:
    look = PlayedTool("look", ToolResult("it is broken", is_error=True))
    reviewer = PlayedModel(reviews())
    executor = PlayedModel(
        says("", call("look")), submits("no luck", outcome="blocked", evidence="look says it is broken")
    )
    stage = Stage(executor=executor, reviewer=reviewer, tools=[look])

    await stage.run()

    request = reviewer.requests[0]
    opening = request.messages[0]
    assert isinstance(opening, UserMessage)
    for told in ("what now?", "Outcome: blocked", "no luck", "look(): failed", "it is broken"):
        assert told in opening.text
    assert [spec.name for spec in request.tools] == ["submit_review"]


async def test_a_long_result_is_reviewed_whole_and_told_again_by_its_end() -> None:
    executor = PlayedModel(submits("start" + "x" * 9000 + "end"), submits("short"))
    reviewer = PlayedModel(reviews("self_iterate", notes="Shorter."), reviews())

    await Stage(executor=executor, reviewer=reviewer).run()

    reviewed, again = reviewer.requests[0].messages[0], executor.requests[1].messages[0]
    assert isinstance(reviewed, UserMessage)
    assert isinstance(again, UserMessage)
    assert "start" + "x" * 9000 + "end" in reviewed.text
    assert "xend" in again.text
    assert len(again.text) < 5000


async def test_a_review_that_judges_the_work_failed_ends_the_turn_failed() -> None:
    stage = Stage(reviewer=PlayedModel(reviews("failed", notes="There is no bridge.")))

    outcome = await stage.run()

    assert (outcome.decision, outcome.finished) == (Decision.FAILED, True)
    assert (outcome.error, outcome.error_kind) == ("There is no bridge.", "judged_failed")
    assert (stage.completed.failed, stage.completed.redelivered) == (True, False)


async def test_a_review_without_a_decision_fails_the_turn_and_keeps_what_was_made() -> None:
    stage = Stage(reviewer=PlayedModel(*[says("Looks fine to me.")] * 3))

    outcome = await stage.run()

    assert (outcome.decision, outcome.finished, outcome.error_kind) == (Decision.FAILED, True, "no_decision")
    assert outcome.artifact == "the answer"
    assert stage.phase("review").failed


async def test_no_action_that_nobody_waits_for_is_skipped_without_a_review() -> None:
    stage = Stage(executor=PlayedModel(submits("nothing to do", outcome="no_action")), reviewer=PlayedModel())

    outcome = await stage.run(trigger_from(reply=Reply.NONE))

    assert (outcome.decision, outcome.finished) == (Decision.SKIPPED, True)
    assert stage.completed.decision == "skipped"


async def test_an_ask_ends_the_turn_after_its_round_without_a_review() -> None:
    look = PlayedTool("look")
    executor = PlayedModel(says("I ask the CTO.", call("a2a_ask", handle="cto", brief="how?"), call("look")))
    stage = Stage(executor=executor, reviewer=PlayedModel(), tools=[ask_tool("channel-9"), look])

    outcome = await stage.run()

    assert (outcome.decision, outcome.finished, outcome.asks) == (Decision.DONE, True, ("channel-9",))
    assert len(look.calls) == 1
    assert (stage.phase("execute").decision, stage.completed.asks) == ("waiting", ("channel-9",))
    assert outcome.reached_outside


async def test_an_ask_outranks_a_submission_of_the_same_round() -> None:
    executor = PlayedModel(says("", call("a2a_ask"), call("submit_work", outcome="delivered", summary="so far")))
    stage = Stage(executor=executor, reviewer=PlayedModel(), tools=[ask_tool()])

    outcome = await stage.run()

    assert (outcome.asks, outcome.artifact) == (("channel-1",), "so far")


async def test_a_refused_ask_does_not_end_the_turn() -> None:
    refused = PlayedTool("a2a_ask", ToolResult("nobody is called that", is_error=True, ends_turn=True, ask="x"))
    stage = Stage(executor=PlayedModel(says("", call("a2a_ask")), submits()), tools=[refused])

    outcome = await stage.run()

    assert (outcome.asks, outcome.artifact) == ((), "the answer")


async def test_a_served_tool_is_callable_once_it_was_activated_and_stays_so_in_the_next_iteration() -> None:
    served = PlayedTool("notes_add", server="notes", annotations=Annotations(read_only=Hint.YES))
    executor = PlayedModel(
        says("", call("notes_add")),
        says("", call("list_mcp_server_tools", server="notes"), call("activate_tool", name="notes_add")),
        says("", call("notes_add")),
        submits("one"),
        says("", call("notes_add")),
        submits("two"),
    )
    reviewer = PlayedModel(reviews("self_iterate", notes="more"), reviews())
    stage = Stage(executor=executor, reviewer=reviewer, tools=[served])

    await stage.run()

    offered = [{spec.name for spec in request.tools} for request in executor.requests]
    assert ["notes_add" in names for names in offered] == [False, False, True, True, True, True]
    assert len(served.calls) == 2
    results = stage.phase("execute").tool_executions
    assert "activate_tool" in results[0].error
    assert results[1].result == "- notes_add: The tool notes_add."
    assert results[3].origin == "mcp:notes"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (call("list_mcp_server_tools", server="nots"), "known: notes, gone"),
        (call("list_mcp_server_tools", server="gone"), "does not serve now: it did not start"),
        (call("activate_tool", name="nothing"), "no tool is called `nothing`"),
    ],
)
async def test_discovery_says_what_there_is(asked: ToolCall, told: str) -> None:
    executor = PlayedModel(says("", asked), submits())
    stage = Stage(executor=executor, tools=[PlayedTool("notes_add", server="notes")], failed_servers=["gone"])

    await stage.run()

    assert told in stage.phase("execute").tool_executions[0].error


async def test_the_scenario_says_where_the_turn_stands() -> None:
    executor = PlayedModel(says("", call("look")), submits())
    stage = Stage(executor=executor, tools=[PlayedTool("look")])

    await stage.run(fence=CountingFence())

    assert executor.requests[1].scenario == {
        "seat": "ceo",
        "phase": "execute",
        "iteration": "1",
        "round": "2",
        "trigger": "external_notification",
    }
    assert stage.reviewer.requests[0].scenario["phase"] == "review"
