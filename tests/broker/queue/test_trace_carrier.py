"""The envelope alone carries the trace: the queue moves bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crewlet import topics
from crewlet.base.trace import Trace
from crewlet.testing.contracts.queue_handlers import Recorder
from tests.broker.queue.rig import INBOX, Node, event

pytestmark = pytest.mark.slow

TRACE = Trace("a" * 32, "b" * 16, "c" * 16)


@pytest.mark.spec("E-181")
async def test_a_trace_comes_through_the_broker_in_the_envelope_and_nowhere_else(node: Node) -> None:
    handler = Recorder()
    traced = replace(event("m1"), trace_id=TRACE.trace_id, span_id=TRACE.span_id, parent_span_id=TRACE.parent_span_id)
    await node.queue.ensure_subscription(INBOX)

    await node.queue.publish(INBOX.topic, traced)
    stored = await node.api.last_message(topics.STREAM_AGENT, INBOX.topic)
    await node.queue.subscribe(INBOX, handler)
    await handler.handled(1)

    assert handler.deliveries[0].event.trace == TRACE
    assert stored is not None
    assert stored.headers.keys() == {"Nats-Msg-Id"}
