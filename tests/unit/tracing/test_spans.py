"""What a finished span says, and under which ids."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from crewlet.base.trace import Trace
from crewlet.testing import SeededIds, VirtualClock
from crewlet.tracing import SpanRecord, Tracer, trace_of

pytestmark = pytest.mark.virtual_time

IDS = SeededIds(5)
CAUSE = Trace("a" * 32, "b" * 16, "c" * 16)


class Kept:
    """Keeps what has ended."""

    def __init__(self) -> None:
        self.spans: list[SpanRecord] = []

    def ended(self, span: SpanRecord) -> None:
        self.spans.append(span)


async def test_a_span_has_the_ids_that_it_was_given_and_its_own_times() -> None:
    kept, clock = Kept(), VirtualClock()
    before = clock.now()

    with Tracer(clock, IDS, kept).span("work", CAUSE, seat="ceo") as span:
        await asyncio.sleep(2)
        span.note(decision="done")

    assert kept.spans == [
        SpanRecord(
            name="work",
            trace=CAUSE,
            started_at=before,
            ended_at=before + timedelta(seconds=2),
            attributes={"seat": "ceo", "decision": "done"},
            error="",
        )
    ]


async def test_a_child_stands_under_its_parent_in_its_trace() -> None:
    kept = Kept()

    with Tracer(VirtualClock(), IDS, kept).child("round", CAUSE):
        pass

    trace = kept.spans[0].trace
    assert (trace.trace_id, trace.parent_span_id) == (CAUSE.trace_id, CAUSE.span_id)
    assert trace.span_id not in (CAUSE.span_id, CAUSE.parent_span_id)


@pytest.mark.parametrize(
    ("error", "said"), [(ValueError("no"), "ValueError: no"), (KeyboardInterrupt(), "KeyboardInterrupt")]
)
async def test_what_is_raised_travels_on_and_is_the_spans_error(error: BaseException, said: str) -> None:
    kept = Kept()

    with pytest.raises(type(error)), Tracer(VirtualClock(), IDS, kept).span("work", CAUSE):
        raise error

    assert [span.error for span in kept.spans] == [said]


async def test_a_failure_without_an_exception_is_said() -> None:
    kept = Kept()

    with Tracer(VirtualClock(), IDS, kept).span("work", CAUSE) as span:
        span.failed("the call failed")

    assert [span.error for span in kept.spans] == ["the call failed"]


async def test_without_a_sink_a_span_only_says_where_its_block_runs() -> None:
    with Tracer(VirtualClock(), IDS).span("work", CAUSE) as span:
        span.note(seat="ceo")
        assert trace_of(IDS) == CAUSE
