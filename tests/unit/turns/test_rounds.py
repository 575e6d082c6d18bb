"""Rounds: stop reasons, correctives, caps, and calls that cannot be made."""

from __future__ import annotations

import pytest

from crewlet.inbox import Decision
from crewlet.llm import StopReason, ToolCall, ToolResultMessage, UserMessage
from crewlet.tools import ToolResult
from crewlet.turns import TurnConfig
from tests.unit.turns.turn_kit import PlayedModel, PlayedTool, Stage, call, reviews, says, submits

pytestmark = pytest.mark.virtual_time

PATH_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


@pytest.mark.spec("E-134")
@pytest.mark.parametrize("stop", [StopReason.MAX_TOKENS, StopReason.CONTEXT_EXCEEDED, StopReason.PAUSED])
async def test_a_reply_that_was_cut_off_ends_the_turn_unfinished_and_runs_no_call(stop: StopReason) -> None:
    tool = PlayedTool("look")
    stage = Stage(executor=PlayedModel(says("Half a", call("look"), stop=stop)), tools=[tool])

    outcome = await stage.run()

    assert (outcome.decision, outcome.finished, outcome.error_kind) == (Decision.FAILED, False, stop)
    assert tool.calls == []
    record = stage.phase("execute")
    assert (record.failed, record.error_kind, record.rounds[0].stop_reason) == (True, stop, stop)
    assert (stage.completed.failed, stage.completed.redelivered) == (True, True)


@pytest.mark.spec("E-134")
async def test_a_refusal_ends_the_turn_for_good() -> None:
    refused = says("I will not.", call("look"), stop=StopReason.REFUSAL)
    declined = type(refused)(
        refused.message, refused.stop_reason, refused.usage, "m", "first", "harm", "It would hurt somebody."
    )
    tool = PlayedTool("look")
    stage = Stage(executor=PlayedModel(declined), reviewer=PlayedModel(), tools=[tool])

    outcome = await stage.run()

    assert (outcome.decision, outcome.finished, outcome.error_kind) == (Decision.FAILED, True, "refusal")
    assert tool.calls == []
    record = stage.phase("execute")
    assert record.refusal is not None
    assert (record.error_kind, record.refusal.category, record.refusal.explanation) == (
        "refusal",
        "harm",
        "It would hurt somebody.",
    )
    assert (stage.completed.redelivered, stage.completed.input_tokens) == (False, 10)


async def test_a_reviewer_that_refuses_does_not_send_the_work_back() -> None:
    stage = Stage(reviewer=PlayedModel(says("No.", stop=StopReason.REFUSAL)))

    outcome = await stage.run()

    assert (outcome.finished, outcome.error_kind) == (True, "refusal")


async def test_prose_is_corrected_and_the_phase_goes_on() -> None:
    executor = PlayedModel(says("I am done."), submits())
    stage = Stage(executor=executor)

    outcome = await stage.run()

    assert outcome.decision is Decision.DONE
    corrective = executor.requests[1].messages[-1]
    assert isinstance(corrective, UserMessage)
    assert "`submit_work`" in corrective.text
    assert [said.declined for said in stage.phase("execute").round_narration] == [True]


async def test_two_correctives_in_a_row_are_the_most_and_then_the_prose_is_rescued() -> None:
    executor = PlayedModel(says("One."), says("Two."), says("Three."))
    reviewer = PlayedModel(reviews())
    stage = Stage(executor=executor, reviewer=reviewer)

    outcome = await stage.run()

    assert len(executor.requests) == 3
    assert outcome.artifact == "Three."
    record = stage.phase("execute")
    assert (record.decision, record.rescue_fired) == ("incomplete", True)
    assert isinstance(reviewer.requests[0].messages[0], UserMessage)
    assert "Outcome: incomplete" in reviewer.requests[0].messages[0].text


async def test_a_tool_call_clears_the_count_of_correctives() -> None:
    executor = PlayedModel(says("One."), says("Two."), says("", call("look")), says("Three."), says("Four."), submits())
    stage = Stage(executor=executor, tools=[PlayedTool("look")])

    outcome = await stage.run()

    assert outcome.artifact == "the answer"


async def test_the_last_round_is_not_corrected() -> None:
    executor = PlayedModel(says("", call("look")), says("That is all."))
    stage = Stage(executor=executor, tools=[PlayedTool("look")], config=TurnConfig(max_tool_rounds=2))

    outcome = await stage.run()

    assert (len(executor.requests), outcome.artifact) == (2, "That is all.")


async def test_a_phase_that_calls_to_the_last_round_is_rescued_with_its_latest_words() -> None:
    executor = PlayedModel(says("Looking.", call("look")), says("", call("look")))
    stage = Stage(executor=executor, tools=[PlayedTool("look")], config=TurnConfig(max_tool_rounds=2))

    outcome = await stage.run()

    assert outcome.artifact == "Looking."
    assert stage.phase("execute").rescue_fired


async def test_an_empty_reply_is_counted_and_is_no_message_of_the_conversation() -> None:
    executor = PlayedModel(says(""), submits())
    stage = Stage(executor=executor)

    await stage.run()

    assert stage.phase("execute").empty_answer_rounds == 1
    assert all(isinstance(message, UserMessage) for message in executor.requests[1].messages)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (call("fly"), "there is no tool `fly` here"),
        (ToolCall("c", "look", None, raw="{oops"), "not a JSON object"),
        (call("look"), "`path` is missing: give a string"),
        (call("look", path=3), "`path` is a value of type integer: give a string"),
    ],
)
async def test_a_call_that_cannot_be_made_is_an_error_the_model_reads(asked: ToolCall, told: str) -> None:
    tool = PlayedTool("look", schema=PATH_SCHEMA)
    executor = PlayedModel(says("", asked), submits())
    stage = Stage(executor=executor, tools=[tool])

    outcome = await stage.run()

    assert outcome.decision is Decision.DONE
    result = executor.requests[1].messages[-1]
    assert isinstance(result, ToolResultMessage)
    assert result.is_error
    assert told in result.content
    assert tool.calls == []


async def test_calls_after_an_accepted_submission_are_not_run_and_say_so() -> None:
    tool = PlayedTool("send")
    submission = call("submit_work", outcome="delivered", summary="sent")
    stage = Stage(executor=PlayedModel(says("", submission, call("send"))), tools=[tool])

    await stage.run()

    assert tool.calls == []
    assert "submit_work" in stage.phase("execute").tool_executions[1].error


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (call("submit_work", outcome="blocked", summary="stuck"), "`evidence` is missing"),
        (call("submit_work", outcome="delivered", summary="  "), "`summary` is empty"),
        (call("submit_work", outcome="incomplete", summary="x"), "one of delivered, no_action, blocked"),
    ],
)
async def test_an_incomplete_submission_is_refused_with_the_remedy(first: ToolCall, told: str) -> None:
    stage = Stage(executor=PlayedModel(says("", first), submits()))

    outcome = await stage.run()

    assert outcome.artifact == "the answer"
    assert told in stage.phase("execute").tool_executions[0].error


async def test_a_review_that_sends_back_needs_notes() -> None:
    stage = Stage(reviewer=PlayedModel(reviews("self_iterate"), reviews("done")))

    outcome = await stage.run()

    assert outcome.decision is Decision.DONE
    assert "`notes` is missing" in stage.phase("review").tool_executions[0].error


async def test_a_failed_tool_is_an_error_the_model_reads() -> None:
    tool = PlayedTool("look", ToolResult("no such file", is_error=True))
    executor = PlayedModel(says("", call("look")), submits())
    stage = Stage(executor=executor, tools=[tool])

    await stage.run()

    result = executor.requests[1].messages[-1]
    assert isinstance(result, ToolResultMessage)
    assert (result.content, result.is_error) == ("no such file", True)
    assert stage.phase("execute").tool_executions[0].error == "no such file"
