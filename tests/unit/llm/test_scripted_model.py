"""The scripted model: which rule answers, what it says, and that it never passes for a real one."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from crewlet.llm import (
    SCRIPTED_MODEL,
    AssistantMessage,
    FailureKind,
    ModelFailure,
    ModelRequest,
    ScriptedModel,
    StopReason,
    ToolCall,
    ToolResultMessage,
    Usage,
    parse_script,
)
from tests.unit.llm.stand_ins import a_request


def scripted(text: str) -> ScriptedModel:
    return ScriptedModel("offline", parse_script(text))


def after(request: ModelRequest, tool: str, result: str, *, is_error: bool = False) -> ModelRequest:
    call = AssistantMessage(calls=(ToolCall("1", tool, {}),))
    return replace(request, messages=(*request.messages, call, ToolResultMessage("1", tool, result, is_error)))


async def test_the_first_rule_that_fits_answers() -> None:
    model = scripted("""
        replies:
          - {when: {seat: cto}, say: the cto}
          - {when: {seat: ceo, phase: review}, say: a review}
          - {when: {seat: ceo, round: 2}, say: the second round}
          - {when: {seat: ceo, woken_by: a2a_message}, say: an answer}
          - {when: {seat: ceo, iteration: 2}, say: the second try}
          - {when: {system: '^sys', text: 'blue|green'}, say: a colour}
          - {say: anything}
    """)

    said = [
        (await model.complete(request)).message.text
        for request in (
            a_request(seat="cto"),
            a_request(seat="ceo", phase="review"),
            a_request(seat="ceo", phase="execute", round="2"),
            a_request(seat="ceo", trigger="a2a_message"),
            a_request(seat="ceo", iteration="2"),
            a_request(text="a green one"),
            a_request(text="a red one"),
        )
    ]

    assert said == [
        "the cto", "a review", "the second round", "an answer", "the second try", "a colour", "anything",
    ]  # fmt: skip


async def test_a_rule_whose_tool_is_not_offered_is_passed_over() -> None:
    model = scripted("replies: [{call: [{tool: add_note}]}, {say: no board}]")

    with_it = await model.complete(a_request("add_note"))
    without = await model.complete(a_request())

    assert [call.name for call in with_it.message.calls] == ["add_note"]
    assert without.message.text == "no board"


async def test_rules_go_by_the_last_result_and_by_whose_it_is() -> None:
    model = scripted("""
        replies:
          - {when: {after: none}, call: [{tool: look}]}
          - {when: {after: look, result: 'at (?P<place>[a-z]+)'}, say: 'found at {place}'}
          - {when: {after: look}, say: 'nothing: {last_tool_result}'}
    """)
    start = a_request("look")

    first = await model.complete(start)
    found = await model.complete(after(start, "look", "it is at home"))
    nothing = await model.complete(after(start, "look", "??"))

    assert [call.name for call in first.message.calls] == ["look"]
    assert found.message.text == "found at home"
    assert nothing.message.text == "nothing: ??"


async def test_arguments_are_filled_in_at_any_depth_and_keep_their_types() -> None:
    model = scripted("""
        replies:
          - call: [{tool: t, with: {a: 'for {seat}', b: [{c: '{trigger}'}], n: 3, ok: true}}]
    """)

    reply = await model.complete(a_request("t", text="the task", seat="ceo"))

    assert reply.message.calls[0].arguments == {"a": "for ceo", "b": [{"c": "the task"}], "n": 3, "ok": True}


async def test_a_text_ends_an_execution_as_its_summary() -> None:
    reply = await scripted("replies: [{say: the answer}]").complete(
        after(a_request("submit_work", "add_note"), "add_note", "done")
    )

    assert reply.stop_reason is StopReason.TOOL_USE
    assert [(call.name, call.arguments) for call in reply.message.calls] == [
        ("submit_work", {"outcome": "delivered", "summary": "the answer", "deliveries": ["add_note"]})
    ]


async def test_a_text_ends_a_workers_task_as_its_result() -> None:
    reply = await scripted("replies: [{say: found}]").complete(a_request("submit_result"))

    assert [(call.name, call.arguments) for call in reply.message.calls] == [("submit_result", {"result": "found"})]


async def test_a_failed_call_and_a_look_around_are_no_deliveries() -> None:
    model = scripted("replies: [{say: x}]")
    failed = after(a_request("submit_work"), "add_note", "no", is_error=True)

    reply = await model.complete(after(failed, "lookup_colleague", "cto"))

    arguments = reply.message.calls[0].arguments
    assert arguments is not None
    assert arguments["deliveries"] == []


async def test_without_a_fitting_rule_an_execution_ends_with_no_action() -> None:
    reply = await scripted("").complete(a_request("submit_work"))

    arguments = reply.message.calls[0].arguments
    assert arguments is not None
    assert arguments["outcome"] == "no_action"
    assert "not a real model" in str(arguments["summary"])


async def test_a_review_lets_the_work_pass_unless_the_script_says_more() -> None:
    plain = await scripted("").complete(a_request("submit_review"))
    better = await scripted("replies: [{say: better}]").complete(a_request("submit_review"))

    assert plain.message.calls[0].arguments == {"decision": "done"}
    assert better.message.calls[0].arguments == {"decision": "done", "final_artifact": "better"}


async def test_a_rule_may_forget_to_end_its_phase() -> None:
    reply = await scripted("replies: [{say: just talk, finish: false}]").complete(a_request("submit_work"))

    assert (reply.message.calls, reply.stop_reason) == ((), StopReason.END)


async def test_a_rule_may_stop_for_any_reason() -> None:
    reply = await scripted("replies: [{say: half a, stop_reason: max_tokens}]").complete(a_request("submit_work"))

    assert (reply.message.text, reply.message.calls, reply.stop_reason) == ("half a", (), StopReason.MAX_TOKENS)


async def test_a_failing_rule_fails_as_often_as_it_says() -> None:
    model = scripted("replies: [{fail: {kind: rate_limited, retry_after_s: 7}, times: 1}, {say: works}]")

    with pytest.raises(ModelFailure) as caught:
        await model.complete(a_request())
    reply = await model.complete(a_request())

    assert (caught.value.kind, caught.value.retry_after_s) == (FailureKind.RATE_LIMITED, 7)
    assert reply.message.text == "works"


async def test_without_defaults_an_unforeseen_request_fails() -> None:
    with pytest.raises(ModelFailure) as caught:
        await scripted("defaults: false").complete(a_request("submit_work"))

    assert caught.value.kind is FailureKind.BAD_REQUEST


async def test_it_streams_its_text_in_pieces() -> None:
    pieces: list[str] = []

    await scripted("replies: [{say: a text of some length}]").complete(a_request(), on_delta=pieces.append)

    assert len(pieces) == 4
    assert "".join(pieces) == "a text of some length"


@pytest.mark.virtual_time
async def test_a_delay_passes_on_the_loop() -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()

    await scripted("{delay_ms: 10, replies: [{say: slow, delay_ms: 1500}]}").complete(a_request())

    assert loop.time() - started == pytest.approx(1.5)


async def test_the_same_request_gets_the_same_reply() -> None:
    request = a_request("t", text="x")
    text = "replies: [{say: s, call: [{tool: t}]}]"

    assert await scripted(text).complete(request) == await scripted(text).complete(request)


async def test_tokens_are_as_written_or_guessed() -> None:
    written = await scripted("replies: [{say: s, usage: {input_tokens: 5, output_tokens: 6}}]").complete(a_request())
    guessed = await scripted("replies: [{say: s}]").complete(a_request(text="x" * 400))

    assert written.usage == Usage(5, 6)
    assert guessed.usage == Usage(101, 1)


async def test_it_says_that_it_is_no_real_model() -> None:
    model = scripted("replies: [{say: s}]")

    reply = await model.complete(a_request())

    assert not model.is_real
    assert (reply.model, reply.message.model, reply.provider_key) == (SCRIPTED_MODEL, SCRIPTED_MODEL, "offline")
