"""Promises about live events: on their way at once, in their place among the others, and waited for by nobody."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base.errors import Unavailable
from crewlet.events import Event
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.queue_broadcast import Feed
from crewlet.testing.contracts.queue_harness import QueueHarness, event

__all__ = ["LiveEvents"]


class LiveEvents(Contract):
    """What is true after a live publish."""

    async def test_every_feed_is_told_of_it(self, queue: QueueHarness) -> None:
        here, there = await queue.client("here"), await queue.client("there")
        near, far, topic = Feed(), Feed(), queue.event_topic("step")
        await here.subscribe_stream(topic, near)
        await there.subscribe_stream(topic, far)

        await here.publish_live(topic, event("m1"))

        await near.heard(1)
        await far.heard(1)
        assert near.told == far.told == [(topic, "m1")]

    async def test_it_keeps_its_place_among_what_is_published_before_and_after_it(self, queue: QueueHarness) -> None:
        client, feed = await queue.client(), Feed()
        await client.subscribe_stream(queue.event_topic(">"), feed)

        for number in range(0, 40, 2):
            await client.publish(queue.event_topic("phase"), event(f"m{number}"))
            await client.publish_live(queue.event_topic("step"), event(f"m{number + 1}"))

        await feed.heard(40)
        assert feed.ids == [f"m{number}" for number in range(40)]

    async def test_a_burst_of_them_stays_in_order(self, queue: QueueHarness) -> None:
        client, feed, topic = await queue.client(), Feed(), queue.event_topic("step")
        await client.subscribe_stream(topic, feed)

        for number in range(100):
            await client.publish_live(topic, event(f"m{number}"))

        await feed.heard(100)
        assert feed.ids == [f"m{number}" for number in range(100)]

    async def test_it_is_told_with_the_publishing_node_on_it(self, queue: QueueHarness) -> None:
        client, original, topic = await queue.client("north"), event("m1"), queue.event_topic("step")
        nodes: list[str] = []
        feed = Feed()

        def keeps(topic: str, event: Event) -> None:
            nodes.append(event.node)
            feed(topic, event)

        await client.subscribe_stream(topic, keeps)

        returned = await client.publish_live(topic, original)

        await feed.heard(1)
        assert (nodes, returned.node, original.node) == (["north"], "north", "")

    async def test_each_listener_is_awaited_before_it_returns(self, queue: QueueHarness) -> None:
        client, topic = await queue.client("north"), queue.event_topic("step")
        told: list[Event] = []

        async def slow(topic: str, event: Event) -> None:
            await asyncio.sleep(0)
            told.append(event)

        client.add_publish_listener(slow)

        stamped = await client.publish_live(topic, event("m1"))

        assert told == [stamped]

    async def test_a_failing_listener_fails_neither_it_nor_the_next_listener(self, queue: QueueHarness) -> None:
        client, topic = await queue.client(), queue.event_topic("step")
        told: list[str] = []

        async def fails(topic: str, event: Event) -> None:
            raise RuntimeError("no room on the disk")

        async def keeps(topic: str, event: Event) -> None:
            told.append(event.id)

        client.add_publish_listener(fails)
        client.add_publish_listener(keeps)

        await client.publish_live(topic, event("m1"))

        assert told == ["m1"]

    async def test_what_cannot_be_on_its_way_is_refused_at_once_and_told_to_no_listener(
        self, queue: QueueHarness
    ) -> None:
        client, topic = await queue.client(), queue.event_topic("step")
        told: list[str] = []

        async def keeps(topic: str, event: Event) -> None:
            told.append(event.id)

        client.add_publish_listener(keeps)
        await queue.crash(client)
        asked_s = queue.now_s()

        with pytest.raises(Unavailable):
            await client.publish_live(topic, event("m1"))

        assert queue.now_s() - asked_s < queue.quiet_s
        assert told == []
