"""Which trace the running code belongs to."""

from __future__ import annotations

import asyncio
import contextlib
import re

import pytest

from crewlet.base.trace import Trace, child_of
from crewlet.testing import SeededIds, VirtualClock
from crewlet.tracing import Tracer, trace_of, under

pytestmark = pytest.mark.virtual_time

IDS = SeededIds(3)
CAUSE = Trace("a" * 32, "b" * 16)


@pytest.mark.spec("E-184")
async def test_outside_any_span_a_fresh_root_is_handed_out_each_time() -> None:
    first, second = trace_of(IDS), trace_of(IDS)

    for trace in (first, second):
        assert re.fullmatch("[0-9a-f]{32}", trace.trace_id)
        assert re.fullmatch("[0-9a-f]{16}", trace.span_id)
        assert trace.parent_span_id == ""
    assert first.trace_id != second.trace_id


async def test_inside_a_span_its_own_ids_are_handed_out() -> None:
    span = Trace("c" * 32, "d" * 16, "e" * 16)

    with Tracer(VirtualClock(), IDS).span("work", span):
        assert trace_of(IDS) == span

    assert trace_of(IDS).trace_id != span.trace_id


async def test_the_inner_span_counts_and_the_outer_comes_back() -> None:
    tracer = Tracer(VirtualClock(), IDS)

    with tracer.span("outer", CAUSE):
        with contextlib.suppress(KeyError), tracer.child("inner", CAUSE) as inner:
            assert trace_of(IDS) == inner.trace
            raise KeyError
        assert trace_of(IDS) == CAUSE


async def test_an_events_trace_holds_for_the_block() -> None:
    with under(CAUSE):
        assert trace_of(IDS) == CAUSE

    assert trace_of(IDS) != CAUSE


@pytest.mark.spec("E-184")
@pytest.mark.parametrize("trace", [Trace("", ""), Trace("a" * 32, ""), Trace("", "b" * 16)])
async def test_an_event_without_ids_does_not_empty_the_trace(trace: Trace) -> None:
    with under(trace):
        found = trace_of(IDS)

    assert len(found.trace_id) == 32
    assert len(found.span_id) == 16


async def test_a_task_belongs_to_the_trace_that_it_was_started_in_and_to_no_other() -> None:
    async def seen() -> Trace:
        await asyncio.sleep(0)
        return trace_of(IDS)

    with under(CAUSE):
        inside = asyncio.ensure_future(seen())
    outside = asyncio.ensure_future(seen())

    assert await inside == CAUSE
    assert await outside != CAUSE


async def test_a_child_of_an_event_without_ids_is_a_root() -> None:
    child = child_of(Trace("", ""), IDS)

    assert (len(child.trace_id), len(child.span_id), child.parent_span_id) == (32, 16, "")
