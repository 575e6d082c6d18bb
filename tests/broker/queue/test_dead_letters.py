"""A message whose budget is spent leaves exactly one copy where people look for poison."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from crewlet import topics
from crewlet.backends.nats import Wire
from crewlet.backends.nats.queue_dead_letters import (
    DELIVERIES_HEADER,
    GROUP_HEADER,
    REASON_HEADER,
    SEQUENCE_HEADER,
    STREAM_HEADER,
    TOPIC_HEADER,
)
from crewlet.backends.nats.wire import Message
from crewlet.base.errors import Unavailable
from crewlet.queue import Defer, Nak
from crewlet.testing import wait_until
from crewlet.testing.contracts.queue_handlers import Recorder
from tests.broker.queue.rig import INBOX, Company, Node, event

pytestmark = pytest.mark.slow

GRAVE = topics.dead_letter(INBOX.topic, INBOX.group)


async def buried(node: Node, count: int = 1) -> None:
    async def there() -> bool:
        return await node.stored(topics.STREAM_DLQ) == count and await node.stored() == 0

    await wait_until(there, what="a dead letter and an empty mailbox")


class DyingWire:
    """A link whose process is killed at the moment in which it would terminate a message."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.died = asyncio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._wire, name)

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        if payload == b"+TERM" or self.died.is_set():
            self.died.set()
            raise Unavailable("this process was killed")
        return await self._wire.request(subject, payload, headers=headers, timeout_s=timeout_s)


@pytest.mark.spec("E-024", "E-039", "E-040")
async def test_a_message_that_always_fails_is_buried_once_after_its_last_delivery(node: Node) -> None:
    handler = Recorder(*[Nak("the tool is gone")] * 10)
    await node.queue.subscribe(INBOX, handler)
    sent = await node.queue.publish(INBOX.topic, event("m1"))

    await buried(node)

    copy = await node.api.last_message(topics.STREAM_DLQ, GRAVE)
    assert handler.ids == ["m1"] * 4
    assert copy is not None
    assert sent.id.encode() in copy.data
    assert await node.api.consumer_names(topics.STREAM_DLQ) == []


async def test_a_dead_letter_says_where_it_came_from_and_why(node: Node) -> None:
    await node.queue.subscribe(INBOX, Recorder(*[Nak("no\nsuch tool: größer")] * 4))
    await node.queue.publish(INBOX.topic, event("m1"))

    await buried(node)

    copy = await node.api.last_message(topics.STREAM_DLQ, GRAVE)
    assert copy is not None
    assert copy.headers[TOPIC_HEADER] == INBOX.topic
    assert copy.headers[GROUP_HEADER] == INBOX.group
    assert copy.headers[STREAM_HEADER] == topics.STREAM_AGENT
    assert copy.headers[SEQUENCE_HEADER] == "1"
    assert copy.headers[DELIVERIES_HEADER] == "4"
    assert copy.headers[REASON_HEADER] == "failed on delivery 4 of 4: no such tool: gr??er"


@pytest.mark.spec("E-041")
async def test_deferrals_spend_the_same_budget(node: Node) -> None:
    handler = Recorder(*[Defer("moved")] * 10)
    await node.queue.subscribe(INBOX, handler)
    await node.queue.publish(INBOX.topic, event("m1"))

    for deliveries in range(1, 5):
        await handler.handled(deliveries)
        await node.queue.wait_idle(INBOX)
        await node.queue.unquiesce(INBOX)

    await buried(node)
    assert handler.headrooms == [3, 2, 1, 0]


async def test_bytes_that_are_no_event_are_buried_at_once(node: Node) -> None:
    handler = Recorder()
    await node.queue.subscribe(INBOX, handler)
    await node.api.publish(INBOX.topic, b"not json")
    await node.queue.publish(INBOX.topic, event("m2"))

    await handler.handled(1)
    await buried(node)

    copy = await node.api.last_message(topics.STREAM_DLQ, GRAVE)
    assert handler.ids == ["m2"]
    assert copy is not None
    assert (copy.data, copy.headers[DELIVERIES_HEADER]) == (b"not json", "1")


async def test_a_death_between_the_copy_and_the_end_leaves_one_copy(company: Company) -> None:
    wires: list[DyingWire] = []

    def dying(wire: Wire) -> Wire:
        wires.append(DyingWire(wire))
        return wires[0]  # type: ignore[return-value] # pyright: ignore[reportReturnType]

    first = await company.node("first", through=dying)
    await first.queue.subscribe(INBOX, Recorder())
    await first.api.publish(INBOX.topic, b"not json")
    await wires[0].died.wait()
    await first.vanish()

    second = await company.node("second")
    assert await second.stored(topics.STREAM_DLQ) == 1
    await second.queue.release_held(INBOX)
    await second.queue.subscribe(INBOX, Recorder())

    await buried(second)
