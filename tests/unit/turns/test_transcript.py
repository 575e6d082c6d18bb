"""Whatever a model does, the conversation it is shown stays one that every provider accepts, and only grows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crewlet.base.errors import Conflict
from crewlet.llm import AssistantMessage, Message, ModelReply, StopReason, ToolCall, ToolResultMessage, UserMessage
from crewlet.testing import run_virtual
from crewlet.tools import ToolResult
from crewlet.turns import TurnConfig
from tests.unit.turns.turn_kit import PlayedModel, PlayedTool, Stage, call, reviews, says, submits

TOOLS = [
    PlayedTool("good", ToolResult("fine")),
    PlayedTool("mute", ToolResult("")),
    PlayedTool("bad", ToolResult("no", is_error=True)),
    PlayedTool("late", TimeoutError()),
    PlayedTool("raises", RuntimeError("a defect")),
    PlayedTool("conflicts", Conflict("k", expected=1)),
    PlayedTool("picky", schema={"type": "object", "required": ["this"]}),
    PlayedTool("served", server="files"),
]
CALLS = st.sampled_from(
    [
        *(call(tool.row.name) for tool in TOOLS),
        call("nothing"),
        call("activate_tool", name="served"),
        call("submit_work", outcome="blocked", summary="no evidence"),
        call("submit_work", outcome="delivered", summary="done"),
        ToolCall("unparsed", "good", None, raw="{"),
    ]
)


def reply(text: str, calls: list[ToolCall], stop: StopReason | None) -> ModelReply:
    return says(text, *calls, stop=stop)


REPLIES = st.builds(
    reply,
    st.sampled_from(["", "Some words."]),
    st.lists(CALLS, max_size=4),
    st.sampled_from([None, None, None, None, None, StopReason.MAX_TOKENS]),
)


def assert_valid(messages: Sequence[Message]) -> None:
    """A user message first; then each assistant message with calls is followed by one result a call, in order."""
    assert isinstance(messages[0], UserMessage)
    waiting: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            assert waiting, "a result without a call"
            assert waiting.pop(0) == (message.call_id, message.name)
            assert message.content
            continue
        assert not waiting, f"calls without results: {waiting}"
        if isinstance(message, AssistantMessage):
            assert message.text or message.calls
            waiting = [(each.id, each.name) for each in message.calls]
    assert not waiting


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(replies=st.lists(REPLIES, min_size=1, max_size=8))
def test_every_request_holds_a_valid_conversation_that_only_grew(replies: list[ModelReply]) -> None:
    executor = PlayedModel(*replies, *[submits()] * 9)
    reviewer = PlayedModel(*[reviews("self_iterate", notes="more")] * 9)
    stage = Stage(executor=executor, reviewer=reviewer, tools=TOOLS, config=TurnConfig(max_tool_rounds=6))

    run_virtual(stage.run())

    earlier: tuple[Message, ...] = ()
    for request in executor.requests:
        assert_valid(request.messages)
        if request.scenario["round"] != "1":
            assert request.messages[: len(earlier)] == earlier
            assert len(request.messages) > len(earlier) or request.messages == earlier
        earlier = request.messages
    for record in (stage.phase("execute", n) for n in range(1, stage.completed.iterations + 1)):
        assert len(record.rounds) <= 6
