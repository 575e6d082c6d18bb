"""What each wire brings, whole and streamed, through the vendors' own SDKs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from crewlet.base.errors import Fenced
from crewlet.llm import FailureKind, ModelFailure, StopReason, ToolResultMessage, Usage, VendorModel
from crewlet.testing.model_replies import Answer, CallOut, HttpError
from crewlet.testing.model_servers import ModelServer
from tests.e2e.llm.conftest import ADD_NOTE, HELLO, KEY, MODELS, MakeModel

pytestmark = pytest.mark.slow


class Heard:
    """What was told while a reply streamed in; nothing is asked to stream where ``streamed`` is false."""

    def __init__(self, *, streamed: bool) -> None:
        self.pieces: list[str] = []
        self.on_delta: Callable[[str], None] | None = self.pieces.append if streamed else None

    @property
    def text(self) -> str:
        return "".join(self.pieces)


async def test_text_comes_back_with_its_cost(
    server: ModelServer, make_model: MakeModel, wire: str, streamed: bool
) -> None:
    server.will(Answer(text="Good morning to you.", input_tokens=20, output_tokens=5, cache_read_tokens=3))
    heard = Heard(streamed=streamed)

    reply = await make_model(wire).complete(HELLO, on_delta=heard.on_delta)

    cached_apart = 3 if wire == "anthropic" else 0  # Anthropic counts what it read from its cache beside the input.
    assert reply.message.text == "Good morning to you."
    assert heard.text == ("Good morning to you." if streamed else "")
    assert reply.stop_reason is StopReason.END
    assert reply.usage == Usage(20 + cached_apart, 5, cache_read_tokens=3)
    assert (reply.model, reply.provider_key) == (MODELS[wire], "smart")


async def test_a_stream_is_told_piece_by_piece(server: ModelServer, make_model: MakeModel, wire: str) -> None:
    server.will(Answer(text="a text of several pieces", thinking="secret thoughts"))
    heard = Heard(streamed=True)

    await make_model(wire).complete(HELLO, on_delta=heard.on_delta)

    assert len(heard.pieces) > 1
    assert heard.text == "a text of several pieces"


async def test_tool_calls_come_back_in_order(
    server: ModelServer, make_model: MakeModel, wire: str, streamed: bool
) -> None:
    server.will(
        Answer(calls=(CallOut("add_note", '{"text": "one"}', "c1"), CallOut("add_note", '{"text":"two"}', "c2")))
    )

    reply = await make_model(wire).complete(HELLO, on_delta=Heard(streamed=streamed).on_delta)

    assert reply.stop_reason is StopReason.TOOL_USE
    assert [(call.id, call.name, call.arguments) for call in reply.message.calls] == [
        ("c1", "add_note", {"text": "one"}),
        ("c2", "add_note", {"text": "two"}),
    ]


@pytest.mark.parametrize("raw", ['{"text": "on', '["a list"]', "not json"])
@pytest.mark.parametrize(
    ("wire_name", "streams"),
    # A whole message of Anthropic's holds the arguments as JSON already: there they cannot be broken.
    [
        ("anthropic", True),
        ("openai", True),
        ("openai", False),
        ("openai-compatible", True),
        ("openai-compatible", False),
    ],
)
async def test_arguments_that_are_no_object_are_kept_raw(
    server: ModelServer, make_model: MakeModel, wire_name: str, streams: bool, raw: str
) -> None:
    server.will(Answer(calls=(CallOut("add_note", raw),)))

    reply = await make_model(wire_name).complete(HELLO, on_delta=Heard(streamed=streams).on_delta)

    assert [(call.arguments, call.raw) for call in reply.message.calls] == [(None, raw)]


async def test_a_call_without_arguments_has_none(
    server: ModelServer, make_model: MakeModel, wire: str, streamed: bool
) -> None:
    server.will(Answer(calls=(CallOut("add_note", "{}"),)))

    reply = await make_model(wire).complete(HELLO, on_delta=Heard(streamed=streamed).on_delta)

    assert [call.arguments for call in reply.message.calls] == [{}]


@pytest.mark.parametrize(
    ("wire_name", "stop", "expected"),
    [
        ("anthropic", "length", StopReason.MAX_TOKENS),
        ("anthropic", "pause_turn", StopReason.PAUSED),
        ("anthropic", "model_context_window_exceeded", StopReason.CONTEXT_EXCEEDED),
        ("anthropic", "stop_sequence", StopReason.END),
        ("anthropic", "a_new_reason", StopReason.END),
        ("openai", "length", StopReason.MAX_TOKENS),
        ("openai", "content_filter", StopReason.REFUSAL),
        ("openai-compatible", "length", StopReason.MAX_TOKENS),
        ("openai-compatible", "content_filter", StopReason.REFUSAL),
        ("openai-compatible", "a_new_reason", StopReason.END),
        ("openai-compatible", "none", StopReason.END),
    ],
)
async def test_each_vendors_word_for_the_end_means_one_of_ours(
    server: ModelServer, make_model: MakeModel, streamed: bool, wire_name: str, stop: str, expected: StopReason
) -> None:
    server.will(Answer(text="half a thought", stop=stop))

    reply = await make_model(wire_name).complete(HELLO, on_delta=Heard(streamed=streamed).on_delta)

    assert reply.stop_reason is expected
    assert reply.message.text == "half a thought"


async def test_a_whole_reply_that_does_not_say_why_it_ended_ended(
    server: ModelServer, make_model: MakeModel, wire: str
) -> None:
    server.will(Answer(text="done", stop="none"))

    assert (await make_model(wire).complete(HELLO)).stop_reason is StopReason.END


async def test_a_refusal_is_a_reply_with_its_reason_and_its_cost(
    server: ModelServer, make_model: MakeModel, wire: str, streamed: bool
) -> None:
    server.will(Answer(refusal="I will not.", refusal_category="cyber", input_tokens=9, output_tokens=2))

    reply = await make_model(wire).complete(HELLO, on_delta=Heard(streamed=streamed).on_delta)

    assert reply.stop_reason is StopReason.REFUSAL
    assert reply.refusal_explanation == "I will not."
    assert reply.refusal_category == ("cyber" if wire == "anthropic" else "")
    assert reply.usage == Usage(9, 2)


async def test_a_stream_that_breaks_off_is_no_reply(server: ModelServer, make_model: MakeModel, wire: str) -> None:
    server.will(Answer(text="half of a", reset=True))

    with pytest.raises(ModelFailure) as caught:
        await make_model(wire).complete(HELLO, on_delta=Heard(streamed=True).on_delta)

    assert caught.value.kind is FailureKind.NETWORK


@pytest.mark.parametrize("wire_name", ["anthropic", "openai"])
async def test_a_vendors_stream_that_ends_too_early_is_no_reply(
    server: ModelServer, make_model: MakeModel, wire_name: str
) -> None:
    server.will(Answer(text="half of a", cut=True))

    with pytest.raises(ModelFailure) as caught:
        await make_model(wire_name).complete(HELLO, on_delta=Heard(streamed=True).on_delta)

    assert caught.value.kind is FailureKind.NETWORK


async def test_a_compatible_stream_may_end_without_saying_why(server: ModelServer, make_model: MakeModel) -> None:
    server.will(Answer(text="all of it", cut=True))

    reply = await make_model("openai-compatible").complete(HELLO, on_delta=Heard(streamed=True).on_delta)

    assert (reply.message.text, reply.stop_reason) == ("all of it", StopReason.END)


async def test_a_fence_that_closes_while_text_streams_in_ends_the_call(
    server: ModelServer, make_model: MakeModel, wire: str
) -> None:
    def fenced(_piece: str) -> None:
        raise Fenced("the seat moved")

    server.will(Answer(text="a long answer"))

    with pytest.raises(Fenced):
        await make_model(wire).complete(HELLO, on_delta=fenced)


async def test_the_model_is_told_of_the_tools_and_left_to_choose(
    server: ModelServer, make_model: MakeModel, wire: str
) -> None:
    server.will(Answer(text="ok"))

    await make_model(wire).complete(HELLO)

    body = server.requests[0].body
    tool = body["tools"][0]
    tool = tool.get("function", tool)
    schema = tool.get("input_schema") or tool["parameters"]
    assert (tool["name"], tool["description"]) == (ADD_NOTE.name, ADD_NOTE.description)
    assert schema["properties"]["text"] == {"type": "string"}
    assert body["tool_choice"] == ({"type": "auto"} if wire == "anthropic" else "auto")
    assert "Be brief." in str(body)


async def test_anthropic_caches_the_system_prompt_and_the_tools_and_bounds_the_reply(
    server: ModelServer, make_model: MakeModel
) -> None:
    server.will(Answer(text="ok"))

    await make_model("anthropic").complete(HELLO)

    body = server.requests[0].body
    assert [(block["text"], block["cache_control"]["type"]) for block in body["system"]] == [("Be brief.", "ephemeral")]
    assert body["tools"][-1]["cache_control"]["type"] == "ephemeral"
    assert body["max_tokens"] == 16_384
    assert "thinking" not in body


async def test_anthropic_caches_a_conversation_once_it_goes_on_and_what_was_written_is_counted(
    server: ModelServer, make_model: MakeModel
) -> None:
    server.will(
        Answer(calls=(CallOut("add_note", '{"text": "a"}', "c1"),)),
        Answer(text="ok", input_tokens=10, output_tokens=2, cache_read_tokens=300, cache_write_tokens=40),
    )
    model = make_model("anthropic")

    first = await model.complete(HELLO)
    more = (*HELLO.messages, first.message, ToolResultMessage("c1", "add_note", "noted"))
    second = await model.complete(replace(HELLO, messages=more))

    at_once, going_on = ([str(said) for said in request.body["messages"]] for request in server.requests)
    assert "cache_control" not in at_once[0]
    assert ["cache_control" in said for said in going_on] == [False, False, True]
    assert second.usage == Usage(350, 2, cache_read_tokens=300, cache_write_tokens=40)


async def test_openai_is_asked_to_store_nothing(server: ModelServer, make_model: MakeModel) -> None:
    server.will(Answer(text="ok"))

    await make_model("openai").complete(HELLO)

    assert (server.requests[0].path, server.requests[0].body["store"]) == ("/v1/responses", False)


async def test_the_key_goes_out_as_a_bearer(server: ModelServer, make_model: MakeModel, wire: str) -> None:
    server.will(Answer(text="ok"))

    await make_model(wire).complete(HELLO)

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_an_endpoint_without_keys_is_called_without_one_of_ours(
    server: ModelServer, make_model: MakeModel
) -> None:
    server.will(Answer(text="ok"))

    reply = await make_model("openai-compatible", "").complete(HELLO)

    assert reply.message.text == "ok"
    assert KEY not in str(server.requests[0].headers)


@pytest.mark.parametrize(
    ("wire_name", "model", "expected"),
    [
        ("anthropic", "claude-sonnet-4-6", {"effort": "high"}),
        ("anthropic", "claude-haiku-4-5", {"type": "enabled", "budget_tokens": 4000}),
        ("openai", "gpt-5.4", {"effort": "high"}),
        ("openai-compatible", "some-model", "high"),
    ],
)
async def test_reasoning_is_asked_for_in_the_vendors_terms(
    server: ModelServer, make_model: MakeModel, wire_name: str, model: str, expected: object
) -> None:
    server.will(Answer(text="ok"))
    asking: VendorModel = make_model(
        wire_name, model=model, reasoning=True, reasoning_effort="high", reasoning_budget_tokens=4000
    )

    await asking.complete(HELLO)

    body = server.requests[0].body
    if wire_name == "anthropic":
        assert body["max_tokens"] == 16_384 + 4000
        asked = body.get("output_config") if "adaptive" in str(body.get("thinking")) else body["thinking"]
    else:
        asked = body.get("reasoning_effort") or {"effort": body["reasoning"]["effort"]}
    assert asked == expected


@pytest.mark.parametrize("wire_name", ["openai", "openai-compatible"])
async def test_a_server_that_answers_with_no_json_has_failed(
    server: ModelServer, make_model: MakeModel, wire_name: str
) -> None:
    server.will(HttpError(status=200, body="<html>busy</html>"))

    with pytest.raises(ModelFailure) as caught:
        await make_model(wire_name).complete(HELLO)

    assert caught.value.kind is FailureKind.SERVER
