"""A conversation goes back to its own vendor unchanged, and to another one without what only its vendor can read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crewlet.llm import AssistantMessage, ModelRequest, ToolCall, ToolResultMessage, ToolSpec, UserMessage
from crewlet.testing.model_replies import Answer, CallOut
from crewlet.testing.model_servers import ModelServer
from tests.e2e.llm.conftest import HELLO, MakeModel

pytestmark = pytest.mark.slow

THOUGHTFUL = Answer(
    text="I note it.", thinking="hm, a note", signature="c2lnbmVk", calls=(CallOut("add_note", '{"text":"a"}', "c1"),)
)


def going_on(reply: AssistantMessage, *, is_error: bool = False) -> ModelRequest:
    result = ToolResultMessage("c1", "add_note", "no board", is_error)
    return replace(HELLO, messages=(*HELLO.messages, reply, result, UserMessage("and now?")))


def sent(server: ModelServer) -> list[dict[str, Any]]:
    body = server.requests[-1].body
    return body.get("messages") or body["input"]


def unheard(_piece: str) -> None:
    """Takes what streams in and does nothing with it."""


async def test_the_same_vendor_gets_its_own_blocks_back(
    server: ModelServer, make_model: MakeModel, wire: str, streamed: bool
) -> None:
    server.will(THOUGHTFUL, Answer(text="done"))
    model = make_model(wire)

    first = await model.complete(HELLO, on_delta=unheard if streamed else None)
    await model.complete(going_on(first.message))

    said = str(sent(server))
    # Chat Completions has no signed blocks; what a compatible server calls reasoning goes back as it came.
    assert ("hm, a note" if wire == "openai-compatible" else "c2lnbmVk") in said
    assert first.message.reasoning == "hm, a note"
    assert "I note it." in said
    assert "c1" in said


async def test_another_vendor_gets_what_was_said_and_called_and_no_reasoning(
    server: ModelServer, make_model: MakeModel, wire: str
) -> None:
    server.will(THOUGHTFUL, *(Answer(text="done") for _ in range(2)))
    first = await make_model(wire).complete(HELLO)

    for other in {"anthropic", "openai", "openai-compatible"} - {wire}:
        await make_model(other).complete(going_on(first.message))
        said = str(sent(server))
        assert "I note it." in said
        assert "add_note" in said
        assert "hm, a note" not in said
        assert "c2lnbmVk" not in said


async def test_another_model_of_the_same_vendor_counts_as_another(server: ModelServer, make_model: MakeModel) -> None:
    server.will(THOUGHTFUL, Answer(text="done"))
    first = await make_model("anthropic").complete(HELLO)

    await make_model("anthropic", model="claude-haiku-4-5").complete(going_on(first.message))

    assert "hm, a note" not in str(sent(server))


def unmarked(messages: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Their blocks, without what is to be cached: the vendor compares them so."""
    return [
        [{name: value for name, value in block.items() if name != "cache_control"} for block in message["content"]]
        for message in messages
    ]


MORE_TOOLS = (*HELLO.tools, ToolSpec("add_task", "Adds a task.", {"type": "object"}))
BINDING, LENIENT = "claude-opus-5-5", "claude-sonnet-4-6"


async def test_a_model_that_binds_its_reasoning_to_its_tools_gets_none_of_other_tools_back(
    server: ModelServer, make_model: MakeModel
) -> None:
    later = replace(THOUGHTFUL, thinking="oh, a task", calls=(CallOut("add_task", "{}", "c2"),))
    server.will(THOUGHTFUL, later, Answer(text="done"))
    model = make_model("anthropic", model=BINDING)

    first = await model.complete(HELLO)
    second = await model.complete(replace(going_on(first.message), tools=MORE_TOOLS))
    thought_then = str(sent(server))
    result = ToolResultMessage("c2", "add_task", "done")
    more = (*going_on(first.message).messages, second.message, result)
    await model.complete(replace(HELLO, messages=more, tools=MORE_TOOLS))

    assert "hm, a note" not in thought_then
    assert "I note it." in thought_then
    assert "add_note" in str(sent(server)[1])
    assert "hm, a note" not in str(sent(server))
    assert "oh, a task" in str(sent(server))
    assert unmarked(sent(server)[:3]) == unmarked(server.requests[1].body["messages"])


async def test_reasoning_before_the_last_reply_to_other_tools_is_left_out_as_well(
    server: ModelServer, make_model: MakeModel
) -> None:
    later = replace(THOUGHTFUL, thinking="oh, a task", calls=(CallOut("add_task", "{}", "c2"),))
    server.will(THOUGHTFUL, later, Answer(text="done"))
    model = make_model("anthropic", model=BINDING)
    first = await model.complete(HELLO)
    second = await model.complete(replace(going_on(first.message), tools=MORE_TOOLS))

    more = (*going_on(first.message).messages, second.message, ToolResultMessage("c2", "add_task", "done"))
    await model.complete(replace(HELLO, messages=more))

    assert "hm, a note" not in str(sent(server))
    assert "oh, a task" not in str(sent(server))


@pytest.mark.parametrize(("model_name", "tools"), [(BINDING, HELLO.tools), (LENIENT, MORE_TOOLS)])
async def test_reasoning_goes_back_to_the_same_tools_and_to_a_model_that_does_not_mind(
    server: ModelServer, make_model: MakeModel, model_name: str, tools: tuple[ToolSpec, ...]
) -> None:
    server.will(THOUGHTFUL, Answer(text="done"))
    model = make_model("anthropic", model=model_name)
    first = await model.complete(HELLO)

    await model.complete(replace(going_on(first.message), tools=tools))

    assert "hm, a note" in str(sent(server))


async def test_anthropic_gets_results_and_what_follows_in_one_message(
    server: ModelServer, make_model: MakeModel
) -> None:
    server.will(THOUGHTFUL, Answer(text="done"))
    model = make_model("anthropic")
    first = await model.complete(HELLO)

    await model.complete(going_on(first.message, is_error=True))

    last = sent(server)[-1]
    assert [block["type"] for block in last["content"]] == ["tool_result", "text"]
    assert last["content"][0]["is_error"] is True
    assert [message["role"] for message in sent(server)] == ["user", "assistant", "user"]


async def test_a_failed_call_reads_as_failed_on_a_wire_without_a_flag(
    server: ModelServer, make_model: MakeModel
) -> None:
    server.will(THOUGHTFUL, Answer(text="done"))
    model = make_model("openai-compatible")
    first = await model.complete(HELLO)

    await model.complete(going_on(first.message, is_error=True))

    results = [message["content"] for message in sent(server) if message["role"] == "tool"]
    assert results == ['{"error":"no board"}']


async def test_arguments_that_were_no_json_can_be_sent_back(
    server: ModelServer, make_model: MakeModel, wire: str
) -> None:
    server.will(Answer(text="done"))
    broken = AssistantMessage("x", calls=(ToolCall("c1", "add_note", None, '{"text": "on'),))

    reply = await make_model(wire).complete(going_on(broken, is_error=True))

    assert reply.message.text == "done"


async def test_an_empty_reply_is_left_out(server: ModelServer, make_model: MakeModel, wire: str) -> None:
    server.will(Answer(text="done"))
    request = replace(HELLO, messages=(*HELLO.messages, AssistantMessage(), UserMessage("say something")))

    await make_model(wire).complete(request)

    assert [message["role"] for message in sent(server) if message["role"] == "assistant"] == []
