"""A reply that a turn wrote down is read back as it was."""

from __future__ import annotations

from crewlet.inbox.journal_entries import read_reply, wire_reply
from crewlet.llm import AssistantMessage, ModelReply, StopReason, ToolCall, Usage


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
