"""The spans of a turn are the ones that its events carry: one tree under what woke it."""

from __future__ import annotations

import pytest

from crewlet.base.trace import Trace
from crewlet.events import Event
from crewlet.testing import SeededIds
from crewlet.tools import CallContext, ToolResult
from crewlet.tracing import SpanRecord, trace_of
from tests.unit.turns.turn_kit import (
    TRIGGER_TRACE,
    PlayedModel,
    PlayedTool,
    Stage,
    call,
    failure,
    says,
    submits,
)

pytestmark = pytest.mark.virtual_time


class Kept:
    """Keeps the spans that have ended, by name, in the order of their ends."""

    def __init__(self) -> None:
        self.spans: list[SpanRecord] = []

    def ended(self, span: SpanRecord) -> None:
        self.spans.append(span)

    def of(self, name: str) -> list[SpanRecord]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> SpanRecord:
        (span,) = self.of(name)
        return span


async def worked(*tools: PlayedTool) -> tuple[Stage, Kept]:
    kept = Kept()
    calls = [says("", *(call(tool.row.name) for tool in tools))] if tools else []
    stage = Stage(tools=tools, sink=kept, executor=PlayedModel(*calls, submits()))
    await stage.run()
    return stage, kept


def traces(stage: Stage, event_type: str) -> list[Trace]:
    return [event.trace for event in stage.published if event.type == event_type]


@pytest.mark.spec("E-182")
async def test_the_turns_span_is_a_child_of_the_event_that_woke_it() -> None:
    _, kept = await worked()

    turn = kept.one("agent.turn").trace
    assert (turn.trace_id, turn.parent_span_id) == (TRIGGER_TRACE.trace_id, TRIGGER_TRACE.span_id)
    assert turn.span_id != TRIGGER_TRACE.span_id


@pytest.mark.spec("E-185")
async def test_the_events_of_a_turn_name_the_spans_that_emitted_them() -> None:
    stage, kept = await worked()

    turn = kept.one("agent.turn").trace
    phases = [kept.one(f"agent.turn.{phase}").trace for phase in ("execute", "review")]
    assert traces(stage, "agent_turn_started") == [turn]
    assert traces(stage, "agent_turn_completed") == [turn]
    assert traces(stage, "agent_phase_started") == phases
    assert traces(stage, "agent_phase_completed") == phases
    assert [phase.parent_span_id for phase in phases] == [turn.span_id] * 2


@pytest.mark.spec("E-185")
async def test_the_spans_of_a_turn_are_distinct_and_form_one_tree() -> None:
    _, kept = await worked(PlayedTool("look"), PlayedTool("write"))

    spans = {span.trace.span_id: span for span in kept.spans}
    assert len(spans) == len(kept.spans)
    assert {span.trace.trace_id for span in kept.spans} == {TRIGGER_TRACE.trace_id}
    assert {(span.name, spans[span.trace.parent_span_id].name) for span in kept.spans if span.name != "agent.turn"} == {
        ("agent.turn.execute", "agent.turn"),
        ("agent.turn.review", "agent.turn"),
        ("llm.round", "agent.turn.execute"),
        ("llm.round", "agent.turn.review"),
        ("tool.call", "agent.turn.execute"),
        ("tool.call", "agent.turn.review"),
    }


@pytest.mark.spec("E-180")
async def test_a_tool_finds_its_calls_span_without_being_told() -> None:
    found: list[tuple[Trace, Trace]] = []

    def looks(_arguments: object, context: CallContext) -> ToolResult:
        found.append((trace_of(SeededIds(9)), context.trace))
        return ToolResult("done")

    _, kept = await worked(PlayedTool("look", looks))

    ((current, given),) = found
    assert current == given
    assert given in [span.trace for span in kept.of("tool.call")]


async def test_a_call_that_failed_is_a_span_that_failed() -> None:
    _, kept = await worked(PlayedTool("look", ToolResult("no such file", is_error=True)))

    failed = [span.attributes["tool"] for span in kept.of("tool.call") if span.error]
    assert failed == ["look"]


async def test_a_model_that_failed_fails_its_round_its_phase_and_its_turn() -> None:
    kept = Kept()
    await Stage(executor=PlayedModel(failure()), sink=kept).run()

    assert [span.name for span in kept.spans if span.error] == ["llm.round", "agent.turn.execute", "agent.turn"]


async def test_events_and_outcomes_are_the_same_whether_or_not_spans_are_kept() -> None:
    with_spans, _ = await worked(PlayedTool("look"))
    model = PlayedModel(says("", call("look")), submits())
    without = Stage(tools=[PlayedTool("look")], executor=model)
    await without.run()

    def told(stage: Stage) -> list[Event]:
        return [event for event in stage.published if event.type != "agent_turn_progress"]

    assert told(with_spans) == told(without)
