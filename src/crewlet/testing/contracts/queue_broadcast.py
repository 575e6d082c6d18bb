"""Promises about live feeds: every reader is told of every matching event, from now on, at nobody's cost."""

from __future__ import annotations

import pytest

from crewlet import topics
from crewlet.events import Event
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.queue_handlers import Recorder
from crewlet.testing.contracts.queue_harness import QueueHarness, event
from crewlet.testing.waiting import wait_until

__all__ = ["Broadcast"]


class Feed:
    """A stream handler that keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def __call__(self, topic: str, event: Event) -> None:
        """Keep it."""
        self.told.append((topic, event.id))

    @property
    def ids(self) -> list[str]:
        """The ids of the events, in order."""
        return [event_id for _, event_id in self.told]

    async def heard(self, count: int) -> None:
        """Return once it was told of ``count`` events."""
        await wait_until(lambda: len(self.told) >= count, what=f"{count} events in the feed")


class Broadcast(Contract):
    """What a live feed tells."""

    @pytest.mark.spec("E-194")
    async def test_every_feed_is_told_of_every_matching_event(self, queue: QueueHarness) -> None:
        here, there = await queue.client("here"), await queue.client("there")
        feeds = [Feed(), Feed(), Feed()]
        topic = queue.event_topic("done")
        for client, feed in zip((here, here, there), feeds, strict=True):
            await client.subscribe_stream(topic, feed)

        await here.publish(topic, event("m1"))
        await there.publish(topic, event("m2"))

        for feed in feeds:
            await feed.heard(2)
            assert feed.told == [(topic, "m1"), (topic, "m2")]

    @pytest.mark.spec("E-195")
    async def test_a_feed_begins_now(self, queue: QueueHarness) -> None:
        client, feed, topic = await queue.client(), Feed(), queue.event_topic("done")
        await client.publish(topic, event("before"))

        await client.subscribe_stream(topic, feed)
        await client.publish(topic, event("after"))

        await feed.heard(1)
        await queue.quiet()
        assert feed.ids == ["after"]

    @pytest.mark.spec("E-195")
    async def test_a_feed_on_a_mailbox_takes_nothing_from_it(self, queue: QueueHarness) -> None:
        client, feed, handler = await queue.client(), Feed(), Recorder()
        await client.ensure_subscription(queue.inbox())
        await client.subscribe_stream(queue.inbox().topic, feed)

        await client.publish(queue.inbox().topic, event("m1"))
        await feed.heard(1)
        await client.subscribe(queue.inbox(), handler)

        await handler.handled(1)
        await queue.emptied(queue.inbox())
        assert handler.headrooms == [queue.config.max_deliver - 1]

    @pytest.mark.spec("E-197")
    async def test_a_star_is_one_segment_and_an_arrow_the_rest(self, queue: QueueHarness) -> None:
        client, star, arrow = await queue.client(), Feed(), Feed()
        await client.subscribe_stream(queue.event_topic("*"), star)
        await client.subscribe_stream(queue.event_topic(">"), arrow)

        for number, kind in enumerate(("one", "two.parts", "two.parts.more")):
            await client.publish(queue.event_topic(kind), event(f"m{number}"))

        await arrow.heard(3)
        await queue.quiet()
        assert (star.ids, arrow.ids) == (["m0"], ["m0", "m1", "m2"])

    @pytest.mark.spec("E-196")
    async def test_a_pattern_over_several_namespaces_is_refused(self, queue: QueueHarness) -> None:
        client, root = await queue.client(), queue.event_topic("done").partition(".")[0]

        for pattern in (">", "*.events.done", f"{root}.>", f"{root}.*.done"):
            with pytest.raises(ValueError, match="namespaces"):
                await client.subscribe_stream(pattern, Feed())

    async def test_a_closed_feed_is_told_nothing_more(self, queue: QueueHarness) -> None:
        client, closed, other, topic = await queue.client(), Feed(), Feed(), queue.event_topic("done")
        subscription = await client.subscribe_stream(topic, closed)
        await client.subscribe_stream(topic, other)
        await client.publish(topic, event("m1"))
        await closed.heard(1)

        await subscription.close()
        await subscription.close()
        await client.publish(topic, event("m2"))

        await other.heard(2)
        assert closed.ids == ["m1"]

    async def test_a_readers_fault_costs_it_one_event(self, queue: QueueHarness) -> None:
        client, feed, topic = await queue.client(), Feed(), queue.event_topic("done")

        def fails_once(topic: str, event: Event) -> None:
            feed(topic, event)
            if event.id == "m1":
                raise RuntimeError("the tab is gone")

        await client.subscribe_stream(topic, fails_once)

        await client.publish(topic, event("m1"))
        await client.publish(topic, event("m2"))

        await feed.heard(2)
        assert feed.ids == ["m1", "m2"]

    async def test_dead_letters_are_no_live_traffic(self, queue: QueueHarness) -> None:
        client, feed = await queue.client(), Feed()
        handler = Recorder(*[RuntimeError("poison")] * queue.config.max_deliver)
        await client.subscribe_stream(topics.stream_subjects(topics.STREAM_AGENT), feed)
        await client.subscribe(queue.inbox(), handler)

        await client.publish(queue.inbox().topic, event("m1"))

        await queue.emptied(queue.inbox())
        await queue.quiet()
        assert [topic for topic, _ in feed.told if queue.inbox().topic in topic] == [queue.inbox().topic]
