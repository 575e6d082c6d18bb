"""A reply that a turn wrote down is read back as it was."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart

from crewlet.inbox.journal_entries import Replied, decode_entry, encode_entry, read_reply, wire_reply
from crewlet.llm import AssistantMessage, ModelReply, StopReason, ToolCall, ToolResultMessage, Usage, UserMessage
from crewlet.llm.transcript import reply_of, to_vendor

AT = datetime(2030, 1, 1, tzinfo=UTC)
ANTHROPIC = ModelResponse(
    parts=[
        ThinkingPart("Let me see.", signature="EqQBCkYICxgCKkD/+==", provider_name="anthropic"),
        ThinkingPart("", id="redacted_thinking", signature="Eq0BCkYI", provider_name="anthropic"),
        TextPart("I comment."),
        ToolCallPart("comment", {"text": "done \N{ROCKET}", "n": 2**70}, tool_call_id="toolu_01"),
        ToolCallPart("notes", {}, tool_call_id="toolu_02"),
    ],
    model_name="claude",
    provider_name="anthropic",
    provider_response_id="msg_01",
    timestamp=AT,
    provider_details={"finish_reason": "tool_use"},
    finish_reason="tool_call",
)
OPENAI_RESPONSES = ModelResponse(
    parts=[
        ThinkingPart("", id="rs_01", signature="gAAAAABo", provider_name="openai", provider_details={"raw": ["hm"]}),
        ToolCallPart("comment", '{"text": "done"}', tool_call_id="call_01|fc_01", id="fc_01", provider_name="openai"),
        TextPart("and so", id="msg_02", provider_name="openai"),
    ],
    model_name="gpt",
    provider_name="openai",
    provider_response_id="resp_01",
    timestamp=AT,
    provider_details={"finish_reason": "completed", "timestamp": AT},
    finish_reason="stop",
)


def recorded(reply: ModelReply) -> ModelReply:
    """The reply as a successor reads it from the journal."""
    entry = Replied(at=AT, phase="execute/1", round_num=1, number=1, reply=wire_reply(reply))
    read = decode_entry(encode_entry(entry))
    assert isinstance(read, Replied)
    return read_reply(read.reply)


@pytest.mark.parametrize("response", [ANTHROPIC, OPENAI_RESPONSES], ids=["anthropic", "openai-responses"])
def test_a_vendor_gets_its_own_blocks_back_to_the_letter_from_a_journal(response: ModelResponse) -> None:
    reply = reply_of(response, provider_key="main", backend="vendor", model="m")
    calls = [ToolResultMessage(call.id, call.name, "ok") for call in reply.message.calls]
    live = [UserMessage("go"), reply.message, *calls, UserMessage("on")]

    read = recorded(reply)

    resumed = [UserMessage("go"), read.message, *calls, UserMessage("on")]
    sent, sent_again = (to_vendor(each, backend="vendor", model="m") for each in (live, resumed))
    assert [each.parts for each in sent_again[1:2]] == [each.parts for each in sent[1:2]] == [response.parts]
    assert isinstance(sent_again[1], ModelResponse)
    assert sent_again[1].provider_response_id == response.provider_response_id
    assert read.message.calls == reply.message.calls


@pytest.mark.parametrize("arguments", ['{"text": "\\ud83d"}', {"text": "\ud83d"}, "\ud83d", "[" * 100_000])
def test_a_reply_that_no_text_can_carry_is_recorded_all_the_same(arguments: str | dict[str, object]) -> None:
    parts = [TextPart("half \ud83d"), ThinkingPart("\udc00 a"), ToolCallPart("comm\ud800ent", arguments)]
    reply = reply_of(ModelResponse(parts=parts), provider_key="main", backend="vendor", model="m")

    read = recorded(reply)

    assert read.message.text == "half \N{REPLACEMENT CHARACTER}"
    assert read.message.calls == reply.message.calls
    assert to_vendor([read.message], backend="vendor", model="m") != []


def test_a_recorded_reply_comes_back_whole_its_price_included() -> None:
    said = ModelReply(
        message=AssistantMessage(
            text="I look", reasoning="hm", calls=(ToolCall("c1", "look", {"at": "it"}),), bound_to="ab"
        ),
        stop_reason=StopReason.TOOL_USE,
        usage=Usage(input_tokens=30, output_tokens=10, cache_read_tokens=5, cache_write_tokens=2),
        model="model-1",
        provider_key="main",
        refusal_category="none",
        refusal_explanation="nothing",
        cost_usd=0.25,
    )

    assert read_reply(wire_reply(said)) == said
    assert read_reply(wire_reply(ModelReply(said.message, StopReason.END, Usage(), "m", "k"))).cost_usd is None
