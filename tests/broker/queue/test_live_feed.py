"""Broadcast: every viewer sees every matching event from now on, and holds nothing."""

from __future__ import annotations

import asyncio

import pytest

from crewlet import topics
from crewlet.backends.nats.jetstream_types import ns
from crewlet.events import Event
from crewlet.testing import wait_until
from tests.broker.queue.rig import Node, event

pytestmark = pytest.mark.slow

EVENTS = "crewlet.events.>"


class Viewer:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def __call__(self, topic: str, event: Event) -> None:
        self.seen.append((topic, event.id))

    async def saw(self, *ids: str) -> None:
        await wait_until(lambda: [seen for _, seen in self.seen] == [*ids], what=f"{ids}, not {self.seen}")


async def the_consumer(node: Node) -> str:
    names = await node.api.consumer_names(topics.STREAM_EVENTS)
    assert len(names) == 1
    return names[0]


@pytest.mark.spec("E-195")
async def test_a_feed_acknowledges_nothing_and_is_reaped_after_a_minute(node: Node) -> None:
    await node.queue.subscribe_stream(EVENTS, Viewer())

    info = await node.api.consumer_info(topics.STREAM_EVENTS, await the_consumer(node))

    assert info is not None
    assert (info.config.ack_policy, info.config.deliver_policy) == ("none", "new")
    assert (info.config.durable_name, info.config.inactive_threshold) == ("", ns(60))


@pytest.mark.spec("E-197")
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("crewlet.events.*", ["short"]),
        ("crewlet.events.a.*", ["deep"]),
        ("crewlet.events.>", ["short", "deep"]),
        ("crewlet.events.short", ["short"]),
    ],
)
async def test_wildcards_match_as_the_broker_matches_them(node: Node, pattern: str, expected: list[str]) -> None:
    viewer = Viewer()
    await node.queue.subscribe_stream(pattern, viewer)

    await node.queue.publish("crewlet.events.short", event("short"))
    await node.queue.publish("crewlet.events.a.deep", event("deep"))

    await viewer.saw(*expected)


async def test_a_closed_feed_leaves_no_consumer_and_is_closed_twice_without_harm(node: Node) -> None:
    feed = await node.queue.subscribe_stream(EVENTS, Viewer())

    await feed.close()
    await feed.close()

    assert await node.api.consumer_names(topics.STREAM_EVENTS) == []


async def test_a_feed_whose_consumer_was_reaped_goes_on_without_a_gap(node: Node) -> None:
    viewer = Viewer()
    await node.queue.subscribe_stream(EVENTS, viewer)
    await node.queue.publish(topics.event_topic("probe"), event("e1"))
    await viewer.saw("e1")

    await node.api.consumer_delete(topics.STREAM_EVENTS, await the_consumer(node))
    await node.queue.publish(topics.event_topic("probe"), event("e2"))
    await node.queue.publish(topics.event_topic("probe"), event("e3"))

    await viewer.saw("e1", "e2", "e3")


async def test_a_burst_reaches_a_viewer_whole(node: Node) -> None:
    viewer = Viewer()
    await node.queue.subscribe_stream(EVENTS, viewer)
    padding = "x" * 2000

    for start in range(0, 2000, 200):
        await asyncio.gather(
            *(
                node.queue.publish(topics.event_topic("probe"), event(f"e{number}", padding=padding))
                for number in range(start, start + 200)
            )
        )

    await wait_until(lambda: len(viewer.seen) == 2000, what="2000 events")
    assert len({seen for _, seen in viewer.seen}) == 2000
