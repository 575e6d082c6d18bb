"""The envelope alone carries the trace: the twin, too, moves bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crewlet.base.trace import Trace
from tests.unit.backends.memory_queue_rig import INBOX, Worker, event, moment, running_company

pytestmark = pytest.mark.virtual_time

TRACE = Trace("a" * 32, "b" * 16, "c" * 16)


@pytest.mark.spec("E-181")
async def test_a_trace_comes_through_the_twin_in_the_envelope() -> None:
    worker = Worker()
    traced = replace(event("m1"), trace_id=TRACE.trace_id, span_id=TRACE.span_id, parent_span_id=TRACE.parent_span_id)
    async with running_company() as company:
        client = company.client()
        await client.subscribe(INBOX, worker)

        await client.publish(INBOX.topic, traced)
        await moment()

    assert [delivery.event.trace for delivery in worker.deliveries] == [TRACE]
