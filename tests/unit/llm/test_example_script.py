"""The example company's script: the founder's question travels to the CTO and back, and says that it is a script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crewlet.llm import (
    AssistantMessage,
    ModelReply,
    ModelRequest,
    ScriptedModel,
    ToolResultMessage,
    ToolSpec,
    UserMessage,
    load_script,
)

SCRIPT = Path(__file__).parents[3] / "examples" / "company" / "offline.yaml"
OFFERED = ("submit_work", "lookup_colleague", "a2a_ask", "list_mcp_server_tools", "activate_tool")
QUESTION = "## Task\nA person who runs this company writes to you:\n> What should we build first?"
ASK = "## Task\nYour colleague `ceo` asks you:\n> What should we build first?"
ANSWER = (
    "## Task\nYou asked your colleague `cto`:\n> What should we build first?\n\n`cto` answers:\n> The small thing.\n"
    "> By Friday.\n\nYou asked it while working on this, which you now finish:\n> A person wrote"
)


@pytest.fixture
def model() -> ScriptedModel:
    script = load_script(SCRIPT)
    return ScriptedModel("offline", script.model_copy(update={"delay_ms": 0}))


def woken(seat: str, trigger: str, text: str, *tools: str) -> ModelRequest:
    specs = tuple(ToolSpec(name, "", {}) for name in (*OFFERED, *tools))
    return ModelRequest("", (UserMessage(text),), specs, {"seat": seat, "phase": "execute", "trigger": trigger})


def with_results(request: ModelRequest, reply: ModelReply, *tools: str, failed: bool = False) -> ModelRequest:
    results = tuple(ToolResultMessage(call.id, call.name, "result", failed) for call in reply.message.calls)
    specs = tuple(ToolSpec(name, "", {}) for name in tools)
    return replace(request, messages=(*request.messages, reply.message, *results), tools=(*request.tools, *specs))


def called(reply: ModelReply) -> tuple[str, dict[str, object]]:
    assert isinstance(reply.message, AssistantMessage)
    call = reply.message.calls[0]
    return call.name, dict(call.arguments or {})


async def test_the_ceo_looks_the_cto_up_and_asks(model: ScriptedModel) -> None:
    request = woken("ceo", "external_notification", QUESTION)

    first = await model.complete(request)
    second = await model.complete(with_results(request, first))

    assert called(first) == ("lookup_colleague", {"query": "cto"})
    assert called(second) == ("a2a_ask", {"handle": "cto", "brief": "What should we build first?"})


async def test_the_cto_leaves_a_note_and_answers(model: ScriptedModel) -> None:
    request = woken("cto", "a2a_request", ASK)

    first = await model.complete(request)
    request = with_results(request, first, "add_note")
    second = await model.complete(request)
    third = await model.complete(with_results(request, second))

    assert called(first) == ("activate_tool", {"name": "add_note"})
    assert called(second)[0] == "add_note"
    assert called(second)[1]["text"] == "What should we build first?"
    name, work = called(third)
    assert (name, work["outcome"], work["deliveries"]) == ("submit_work", "delivered", ["add_note"])
    assert "script" in str(work["summary"])


async def test_the_cto_answers_without_a_board_too(model: ScriptedModel) -> None:
    request = woken("cto", "a2a_request", ASK)

    reply = await model.complete(with_results(request, await model.complete(request), failed=True))

    assert called(reply)[0] == "submit_work"


async def test_the_ceo_quotes_the_answer_and_says_that_a_script_speaks(model: ScriptedModel) -> None:
    name, work = called(await model.complete(woken("ceo", "a2a_message", ANSWER)))

    assert name == "submit_work"
    assert "> The small thing.\n> By Friday." in str(work["summary"])
    assert "comes from a script, not from a model" in str(work["summary"])


async def test_whoever_else_is_asked_says_that_a_script_speaks(model: ScriptedModel) -> None:
    _, work = called(await model.complete(woken("engineer", "external_notification", QUESTION)))

    assert "comes from a script, not from a model" in str(work["summary"])
