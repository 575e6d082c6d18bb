"""The events of a turn: complete, in order, on one trace."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from itertools import pairwise

import pytest
import structlog

from crewlet.base import limits
from crewlet.base.errors import Fenced, Unavailable
from crewlet.events import Event
from crewlet.events.types import AgentPhaseStarted, AgentTurnProgress, AgentTurnStarted
from crewlet.inbox import ThreadShown
from crewlet.llm import ModelReply, ModelRequest, OnDelta, OnFallback, Usage
from crewlet.notify import ThreadBlock
from crewlet.tools import Tool, ToolResult
from crewlet.turns import TurnConfig, TurnSetup
from tests.unit.turns.turn_kit import (
    TRIGGER_TRACE,
    CountingFence,
    Line,
    PlayedModel,
    PlayedTool,
    Stage,
    Surface,
    call,
    failure,
    reviews,
    says,
    submits,
    trigger_from,
)

pytestmark = pytest.mark.virtual_time


class StreamingModel(PlayedModel):
    """Submits after streaming ``pieces`` pieces, one each ``every_s``."""

    def __init__(self, *, pieces: int, every_s: float, piece_chars: int = 0) -> None:
        super().__init__(submits())
        self._pieces = pieces
        self._every_s = every_s
        self._padding = "x" * piece_chars

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        assert on_delta is not None
        for number in range(self._pieces):
            on_delta(f"{number} {self._padding}")
            await asyncio.sleep(self._every_s)
        return await super().complete(request)


IN_ORDER = [
    "agent_turn_started",
    "agent_phase_started",
    "prompt.size",
    "agent_phase_completed",
    "agent_phase_started",
    "prompt.size",
    "agent_phase_completed",
    "agent_turn_completed",
]


async def test_a_plain_turn_tells_its_start_its_phases_and_its_end() -> None:
    stage = Stage()

    await stage.run()

    assert stage.types == IN_ORDER
    assert {event.source for event in stage.published} == {"ceo"}
    assert len({event.id for event in stage.published}) == len(stage.published)


async def test_each_event_carries_the_span_that_emitted_it() -> None:
    stage = Stage()

    await stage.run()

    assert {event.trace_id for event in stage.published} == {TRIGGER_TRACE.trace_id}
    turn = [event for event in stage.published if event.type.startswith("agent_turn_") and "progress" not in event.type]
    assert len({event.span_id for event in turn}) == 1
    assert {event.parent_span_id for event in turn} == {TRIGGER_TRACE.span_id}
    phases = [event for event in stage.published if event.type.startswith("agent_phase_")]
    assert len({event.span_id for event in phases}) == 2
    assert {event.parent_span_id for event in phases} == {turn[0].span_id}


async def test_the_start_is_told_before_the_context_is_put_together() -> None:
    order: list[str] = []

    class Watched(PlayedModel):
        @property
        def keys(self) -> tuple[str, ...]:
            order.append("context")
            return ("first",)

    def note(event: Event) -> Exception | None:
        order.append(event.type)
        return None

    await Stage(executor=Watched(submits()), refuse=note).run()

    assert order[:2] == ["agent_turn_started", "context"]


@pytest.mark.spec("E-129")
async def test_the_thread_that_the_message_is_in_is_read_once_the_start_is_told() -> None:
    """A reader that is slow, or takes the process with it, leaves a turn that is known to have begun."""
    stage = Stage()
    told: list[str] = []

    async def read() -> ThreadBlock:
        told.extend(stage.types)
        return ThreadBlock("ann: it is about the invoice")

    await stage.run(replace(trigger_from(), showing=ThreadShown(read)))

    assert told == ["agent_turn_started"]
    assert "it is about the invoice" in stage.phase("execute").user_prompt


@pytest.mark.spec("E-129")
async def test_a_turn_that_dies_over_its_prompts_leaves_its_start_and_what_woke_it() -> None:
    class Broken(Surface):
        def builtins(self) -> list[Tool]:
            raise ZeroDivisionError

    class WithoutTools(Stage):
        def setup(self) -> TurnSetup:
            return replace(super().setup(), tools=Broken())

    stage = WithoutTools()

    with structlog.testing.capture_logs():
        await stage.run()

    started = stage.only(AgentTurnStarted)
    assert started.trigger is not None
    assert (started.trigger.type, started.trigger.sender) == ("external_notification", "operator:local")
    assert (started.turn_id, started.resumed) == (stage.completed.turn_id, False)
    assert "agent_phase_started" not in stage.types


async def test_the_start_says_what_woke_the_turn() -> None:
    stage = Stage()
    trigger = trigger_from()

    outcome = await stage.run(trigger)

    started = stage.only(AgentTurnStarted)
    assert started.trigger is not None
    assert (started.turn_id, started.work_key, started.agent_id, started.role) == (
        outcome.turn_id,
        "work-1",
        "agent-1",
        "Chief Executive",
    )
    assert (started.trigger.id, started.trigger.type) == (trigger.lead.id, "external_notification")
    assert (started.trigger.integration, started.trigger.sender) == ("operator", "operator:local")
    assert started.conversation_key == "conversation-1"


@pytest.mark.spec("E-130")
@pytest.mark.parametrize("closes_at", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("lines", [[submits()], [failure()], [says("", call("look")), submits()], [ValueError()]])
async def test_every_start_is_paired_with_one_end(closes_at: int, lines: list[Line]) -> None:
    stage = Stage(executor=PlayedModel(*lines), tools=[PlayedTool("look")])

    with contextlib.suppress(Fenced):
        await stage.run(fence=CountingFence(closes_at))

    assert stage.types[0] == "agent_turn_started"
    assert stage.types[-1] == "agent_turn_completed"
    assert stage.types.count("agent_turn_started") == stage.types.count("agent_turn_completed") == 1
    assert stage.types.count("agent_phase_started") == stage.types.count("agent_phase_completed")


@pytest.mark.spec("E-134")
async def test_a_phase_record_holds_prompts_answer_calls_and_tokens() -> None:
    executor = PlayedModel(
        says("Let me look.", call("look", where="here"), reasoning="Where is it?"),
        says("", call("submit_work", outcome="delivered", summary="found")),
    )
    stage = Stage(executor=executor, tools=[PlayedTool("look", ToolResult("seen"))])

    await stage.run()

    record = stage.phase("execute")
    assert record.system_prompt == executor.requests[0].system
    assert "what now?" in record.user_prompt
    assert record.response == "<think>Where is it?</think>\nLet me look."
    assert [(r.round, r.stop_reason, r.tool_calls, r.input_tokens) for r in record.rounds] == [
        (1, "tool_use", 1, 10),
        (2, "tool_use", 1, 10),
    ]
    assert [(n.round, n.reasoning, n.content) for n in record.round_narration] == [(1, "Where is it?", "Let me look.")]
    looked = record.tool_executions[0]
    assert (looked.round, looked.name, looked.arguments, looked.result) == (1, "look", {"where": "here"}, "seen")
    assert looked.origin == "builtin"
    assert (record.decision, record.total_tokens, record.max_rounds) == ("delivered", 24, 24)
    assert (record.model, record.provider_key, record.failed) == ("model-1", "first", False)
    assert record.trigger is not None


@pytest.mark.spec("E-131")
async def test_the_end_names_the_tools_that_the_turn_called_by_their_first_calls() -> None:
    executor = PlayedModel(says("", call("write"), call("look", where="a")), says("", call("write", n=2)), submits())
    stage = Stage(executor=executor, tools=[PlayedTool("look"), PlayedTool("write")])

    await stage.run()

    assert stage.completed.tools == ("write", "look", "submit_work", "submit_review")


@pytest.mark.spec("E-131")
async def test_the_end_sums_the_tokens_of_all_phases_and_names_the_models() -> None:
    stage = Stage()

    await stage.run()

    told = stage.completed
    spent = Usage(told.input_tokens, told.output_tokens, told.cache_read_tokens, told.cache_write_tokens)
    assert spent == Usage(20, 4, 8, 2)
    assert (told.execute_model, told.review_model, told.provider_key) == ("model-1", "model-2", "first")
    assert told.decision == "done"


async def test_phases_of_each_iteration_are_told_apart() -> None:
    stage = Stage(
        executor=PlayedModel(submits("a"), submits("b")),
        reviewer=PlayedModel(reviews("self_iterate", notes="more"), reviews()),
    )

    await stage.run()

    began = [(phase.phase, phase.iteration) for phase in stage.all_of(AgentPhaseStarted)]
    assert began == [("execute", 1), ("review", 1), ("execute", 2), ("review", 2)]
    assert stage.phase("review", 1).notes == "more"


async def test_live_frames_show_the_opening_and_each_call_before_and_after_it() -> None:
    executor = PlayedModel(says("Looking.", call("look")), submits())
    stage = Stage(executor=executor, tools=[PlayedTool("look", ToolResult("y" * 5000))])

    await stage.run()

    frames = [frame for frame in stage.all_of(AgentTurnProgress) if frame.phase == "execute"]
    assert [(frame.round_num, frame.state) for frame in frames] == [
        (-1, "opened"),
        (1, "calling"),
        (1, "called"),
        (2, "calling"),
        (2, "called"),
    ]
    assert frames[1].running_call is not None
    assert (frames[1].running_call.name, frames[1].partial_text) == ("look", "Looking.")
    assert frames[2].finished_call is not None
    assert len(frames[2].finished_call.result) == 2001
    assert len(stage.phase("execute").tool_executions[0].result) == 5000


async def test_what_is_live_only_is_waited_for_by_nobody_and_all_else_is() -> None:
    stage = Stage(executor=PlayedModel(says("Looking.", call("look")), submits()), tools=[PlayedTool("look")])

    await stage.run()

    assert {event.type for event in stage.live} == {"agent_turn_progress"}
    assert len(stage.live) == len(stage.all_of(AgentTurnProgress))


async def test_a_frame_that_cannot_be_sent_ends_no_turn() -> None:
    def refuse(event: Event) -> Exception | None:
        return Unavailable("the link is down") if event.type == "agent_turn_progress" else None

    stage = Stage(refuse=refuse)

    outcome = await stage.run()

    assert outcome.finished
    assert stage.all_of(AgentTurnProgress) == []
    assert stage.completed.decision == "done"


async def test_streamed_text_accumulates_and_is_told_at_most_five_times_a_second() -> None:
    stage = Stage(executor=StreamingModel(pieces=20, every_s=0.045), config=TurnConfig())

    await stage.run()

    frames = [event for event in stage.published if getattr(event.data, "state", "") == "streaming"]
    texts = [frame.data.partial_text for frame in frames if isinstance(frame.data, AgentTurnProgress)]
    assert len(texts) == 5
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
    gaps = [(b.timestamp - a.timestamp).total_seconds() for a, b in pairwise(frames)]
    assert min(gaps) >= 0.2


async def test_of_a_reply_that_is_whole_at_once_no_part_is_told() -> None:
    stage = Stage(executor=PlayedModel(submits(), deltas=["a", "b"]))

    await stage.run()

    assert "streaming" not in {frame.state for frame in stage.all_of(AgentTurnProgress)}


async def test_a_reply_that_takes_longer_is_told_from_its_first_words_on() -> None:
    stage = Stage(executor=StreamingModel(pieces=2, every_s=0.1), config=TurnConfig())

    await stage.run()

    told = [event for event in stage.published if getattr(event.data, "state", "") == "streaming"]
    assert [frame.data.partial_text for frame in told if isinstance(frame.data, AgentTurnProgress)] == ["0 "]


async def test_a_long_reply_is_told_in_fewer_frames_the_longer_it_gets() -> None:
    """Each frame holds all of the text so far: at one pace they would grow with its square."""
    stage = Stage(executor=StreamingModel(pieces=600, every_s=0.1, piece_chars=1000), config=TurnConfig())

    await stage.run()

    frames = [event for event in stage.published if getattr(event.data, "state", "") == "streaming"]
    told = sum(len(frame.data.partial_text) for frame in frames if isinstance(frame.data, AgentTurnProgress))
    assert told < 2 * 60 * limits.LIVE_TEXT_CHARS_PER_S


@pytest.mark.parametrize("lines", [[submits()], [failure()]])
async def test_nothing_of_a_stream_outlives_its_reply(lines: list[Line]) -> None:
    stage = Stage(executor=PlayedModel(*lines, deltas=["a", "b"]))

    await stage.run()
    published = len(stage.published)
    await asyncio.sleep(1.0)

    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert len(stage.published) == published


async def test_a_stream_that_goes_on_for_long_ends_with_its_reply() -> None:
    await Stage(executor=StreamingModel(pieces=3, every_s=0.3), config=TurnConfig()).run()

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_review_is_not_streamed() -> None:
    stage = Stage(reviewer=PlayedModel(reviews(), deltas=["thinking", "aloud"]))

    await stage.run()

    assert "streaming" not in {frame.state for frame in stage.all_of(AgentTurnProgress)}
