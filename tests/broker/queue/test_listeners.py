"""Publish listeners: after the broker's acknowledgement, in order, on the publishing node, and never in the way."""

from __future__ import annotations

import asyncio

import pytest

from crewlet import topics
from crewlet.base.errors import PayloadTooLarge
from crewlet.events import Event
from crewlet.testing import wait_until
from tests.broker.queue.rig import Company, Node, event

pytestmark = pytest.mark.slow

TOPIC = topics.event_topic("probe")


@pytest.mark.spec("E-190")
async def test_listeners_are_awaited_in_order_after_the_broker_has_the_message(node: Node) -> None:
    seen: list[tuple[str, str, int]] = []

    async def first(topic: str, event: Event) -> None:
        seen.append(("first", topic, await node.stored(topics.STREAM_EVENTS)))

    async def second(topic: str, event: Event) -> None:
        seen.append(("second", topic, 1))

    node.queue.add_publish_listener(first)
    node.queue.add_publish_listener(second)

    await node.queue.publish(TOPIC, event("e1"))

    assert seen == [("first", TOPIC, 1), ("second", TOPIC, 1)]


@pytest.mark.spec("E-190")
async def test_a_publish_that_failed_is_told_to_nobody(node: Node) -> None:
    told: list[str] = []

    async def listener(topic: str, event: Event) -> None:
        told.append(event.id)

    node.queue.add_publish_listener(listener)

    with pytest.raises(PayloadTooLarge):
        await node.queue.publish(TOPIC, event("e1", text="x" * node.wire.max_payload_bytes))

    assert told == []
    assert await node.stored(topics.STREAM_EVENTS) == 0


@pytest.mark.spec("E-193")
async def test_a_listener_gets_the_event_that_went_out(company: Company) -> None:
    node = await company.node("node-seven")
    told: list[Event] = []

    async def listener(topic: str, event: Event) -> None:
        told.append(event)

    node.queue.add_publish_listener(listener)
    original = event("e1")

    returned = await node.queue.publish(TOPIC, original)

    stored = await node.api.last_message(topics.STREAM_EVENTS, TOPIC)
    assert stored is not None
    assert told == [returned]
    assert (returned.node, original.node) == ("node-seven", "")
    assert b'"node":"node-seven"' in stored.data


async def test_a_cancelled_publish_is_finished_and_told_to_every_listener(node: Node) -> None:
    entered = asyncio.Event()
    told: list[str] = []

    async def slow(topic: str, event: Event) -> None:
        told.append("slow")
        if not entered.is_set():
            entered.set()
            await asyncio.Event().wait()

    async def last(topic: str, event: Event) -> None:
        told.append("last")

    node.queue.add_publish_listener(slow)
    node.queue.add_publish_listener(last)
    publishing = asyncio.create_task(node.queue.publish(TOPIC, event("e1")))
    await entered.wait()

    publishing.cancel()

    await wait_until(lambda: told == ["slow", "slow", "last"], what="both listeners told")
    assert publishing.cancelled()
    assert await node.stored(topics.STREAM_EVENTS) == 1
