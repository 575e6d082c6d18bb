"""The delivery gate: what a turn says of its answer is held against the calls that it made."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from crewlet.events.types import A2aMessage, ExternalNotification
from crewlet.inbox import Decision, Reply, Trigger
from crewlet.llm import UserMessage
from crewlet.tools import Annotations, Hint, ToolResult, ToolRow
from crewlet.turns.delivery import ANY_SURFACE, obligation_of, surface_of
from tests.unit.turns.turn_kit import (
    Line,
    PlayedModel,
    PlayedTool,
    Stage,
    Surface,
    call,
    event_of,
    reviews,
    says,
    submits,
    trigger_from,
)

pytestmark = pytest.mark.virtual_time

READ_ONLY = Annotations(read_only=Hint.YES)


def asked_in_chat(owes: str = "") -> Trigger:
    body = ExternalNotification(integration="chat", agent_handle="ceo", sender="ada", body="when?", owes=owes)
    return trigger_from(event_of(body), reply=Reply.TOOL)


def post(result: ToolResult | None = None) -> PlayedTool:
    return PlayedTool("post", result, server="chat")


def posts(text: str = "soon") -> list[Line]:
    return [says("", call("activate_tool", name="post")), says("", call("post", text=text))]


def stage_of(
    *executor: Line | list[Line], tools: Sequence[PlayedTool] | None = None, reviewer: PlayedModel | None = None
) -> Stage:
    lines: list[Line] = []
    for each in executor:
        lines += each if isinstance(each, list) else [each]
    return Stage(
        executor=PlayedModel(*lines),
        reviewer=reviewer or PlayedModel(*[reviews()] * 3),
        tools=[post()] if tools is None else tools,
    )


def refusals(stage: Stage, iteration: int = 1) -> list[str]:
    calls = stage.phase("execute", iteration).tool_executions
    return [each.error for each in calls if each.name == "submit_work" and each.error]


async def test_an_answer_that_a_tool_carried_and_the_submission_cites_is_done() -> None:
    stage = stage_of(posts(), submits(deliveries=["post"]))

    outcome = await stage.run(asked_in_chat())

    assert (outcome.decision, outcome.finished) == (Decision.DONE, True)
    assert refusals(stage) == []


async def test_a_claim_that_no_call_bears_out_is_sent_back_with_the_tools_that_deliver() -> None:
    stage = stage_of(submits(deliveries=["post"]), posts(), submits(deliveries=["post"]))

    outcome = await stage.run(asked_in_chat())

    assert outcome.decision is Decision.DONE
    assert refusals(stage) == ["not submitted: `deliveries` names `post`, but no call of it went through in this turn"]


async def test_delivered_without_a_call_says_which_tools_reach_the_one_who_asked() -> None:
    stage = stage_of(submits(), posts(), submits(deliveries=["post"]))

    await stage.run(asked_in_chat())

    assert "`post`" in refusals(stage)[0]
    assert "nothing that you called has reached the one who asked" in refusals(stage)[0]


async def test_a_call_that_is_not_cited_is_asked_for() -> None:
    stage = stage_of(posts(), submits(), submits(deliveries=["post"]))

    outcome = await stage.run(asked_in_chat())

    assert outcome.decision is Decision.DONE
    assert "`deliveries` is missing" in refusals(stage)[0]


@pytest.mark.parametrize(
    ("result", "is_delivered"),
    [
        (ToolResult("no such channel", is_error=True), False),
        (ToolResult("no answer", is_error=True, unknown=True), True),
    ],
)
async def test_a_call_known_to_have_failed_delivers_nothing_and_one_of_unknown_end_is_not_asked_for_again(
    result: ToolResult, is_delivered: bool
) -> None:
    stage = stage_of(
        posts(), *[submits(deliveries=["post"])] * 3, submits("b", deliveries=["post"]), tools=[post(result)]
    )

    await stage.run(asked_in_chat())

    assert (refusals(stage) == []) is is_delivered


async def test_another_surface_than_the_askers_is_no_answer() -> None:
    tools = [post(), PlayedTool("write_page", server="wiki")]
    elsewhere: list[Line] = [says("", call("activate_tool", name="write_page")), says("", call("write_page"))]
    stage = stage_of(elsewhere, submits(deliveries=["write_page"]), posts(), submits(deliveries=["post"]), tools=tools)

    outcome = await stage.run(asked_in_chat())

    assert outcome.decision is Decision.DONE
    assert "nothing that you called has reached" in refusals(stage)[0]


async def test_a_source_may_name_another_surface_that_the_answer_is_owed_on() -> None:
    tools = [post(), PlayedTool("comment", server="board")]
    commented: list[Line] = [says("", call("activate_tool", name="comment")), says("", call("comment"))]
    stage = stage_of(commented, submits(deliveries=["comment"]), tools=tools)

    outcome = await stage.run(asked_in_chat(owes="board"))

    assert outcome.decision is Decision.DONE
    assert refusals(stage) == []


async def test_no_action_is_refused_where_a_tool_owes_an_answer() -> None:
    stage = stage_of(submits("nothing", outcome="no_action"), posts(), submits(deliveries=["post"]))

    outcome = await stage.run(asked_in_chat())

    assert outcome.artifact == "the answer"
    assert "`no_action` is not an answer" in refusals(stage)[0]


async def test_no_action_that_the_engine_returns_is_reviewed_as_the_answer() -> None:
    stage = stage_of(submits("nothing to do", outcome="no_action"))

    outcome = await stage.run(trigger_from(reply=Reply.ENGINE))

    assert (outcome.decision, outcome.artifact) == (Decision.DONE, "nothing to do")
    assert stage.phase("review").decision == "done"


async def test_an_answer_that_the_engine_returns_needs_no_call() -> None:
    stage = stage_of(submits())

    outcome = await stage.run(trigger_from(reply=Reply.ENGINE))

    assert (outcome.decision, refusals(stage)) == (Decision.DONE, [])


async def test_a_claim_that_is_kept_up_goes_back_as_an_iteration_and_to_no_reviewer() -> None:
    kept_up: list[Line] = [submits("sent!")] * 3
    stage = stage_of(kept_up, posts(), submits("sent", deliveries=["post"]))

    outcome = await stage.run(asked_in_chat())

    assert (outcome.decision, stage.completed.iterations) == (Decision.DONE, 2)
    assert len(refusals(stage)) == 2
    assert len(stage.reviewer.requests) == 1
    told = stage.executor.requests[3].messages[0]
    assert isinstance(told, UserMessage)
    assert "The engine sent it back: nothing that you called has reached the one who asked" in told.text


async def test_work_that_was_found_good_but_reached_nobody_goes_back() -> None:
    reviewer = PlayedModel(reviews(), reviews())
    stage = stage_of(
        submits("stuck", outcome="blocked", evidence="no idea"),
        posts(),
        submits("told", deliveries=["post"]),
        reviewer=reviewer,
    )

    outcome = await stage.run(asked_in_chat())

    assert (outcome.decision, stage.completed.iterations, outcome.artifact) == (Decision.DONE, 2, "told")
    told = stage.executor.requests[1].messages[0]
    assert isinstance(told, UserMessage)
    assert "nothing has reached the one who asked" in told.text


async def test_a_seat_without_any_tool_that_delivers_may_say_that_it_is_blocked() -> None:
    stage = stage_of(submits("stuck", outcome="blocked", evidence="no tool"), tools=[PlayedTool("look")])

    outcome = await stage.run(asked_in_chat())

    assert (outcome.decision, stage.completed.iterations) == (Decision.DONE, 1)


async def test_what_an_earlier_iteration_delivered_counts_for_the_whole_turn() -> None:
    reviewer = PlayedModel(reviews("self_iterate", notes="shorter"), reviews())
    stage = stage_of(posts(), submits("a", deliveries=["post"]), submits("b", deliveries=["post"]), reviewer=reviewer)

    outcome = await stage.run(asked_in_chat())

    assert (outcome.decision, outcome.artifact) == (Decision.DONE, "b")


@pytest.mark.parametrize(
    ("row", "surface"),
    [
        (ToolRow("t", "", {}, origin="mcp:chat", server="chat"), "chat"),
        (ToolRow("t", "", {}, origin="mcp:chat", server="chat", annotations=READ_ONLY), ""),
        (ToolRow("t", "", {}), ""),
        (ToolRow("t", "", {}, delivers="page"), "page"),
    ],
)
def test_a_tool_delivers_by_its_server_or_by_its_row(row: ToolRow, surface: str) -> None:
    assert surface_of(row) == surface


@pytest.mark.parametrize(
    ("tools", "surface"),
    [
        ([post()], "chat"),
        ([PlayedTool("write", server="wiki")], ANY_SURFACE),
        ([PlayedTool("read", server="chat", annotations=READ_ONLY)], ""),
        ([], ""),
    ],
)
def test_a_surface_that_no_tool_reaches_is_any_surface(tools: list[PlayedTool], surface: str) -> None:
    assert obligation_of(asked_in_chat(), Surface(*tools)).surface == surface


def test_an_asker_on_no_known_surface_is_reached_by_any_delivery() -> None:
    answer = A2aMessage(channel_id="c", requester="ceo", responder="cto", brief="?", content="yes", reply="tool")

    assert obligation_of(trigger_from(event_of(answer), reply=Reply.TOOL), Surface(post())).surface == ANY_SURFACE
