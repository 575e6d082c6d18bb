"""Promises about publish listeners: what is told inside a publish."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.events import Event
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.queue_handlers import Recorder
from crewlet.testing.contracts.queue_harness import QueueHarness, event

__all__ = ["Listeners"]


class Listeners(Contract):
    """What is told inside a publish."""

    @pytest.mark.spec("E-190")
    async def test_a_listener_is_awaited_before_the_publish_returns(self, queue: QueueHarness) -> None:
        client = await queue.client()
        told: list[tuple[str, str]] = []

        async def slow(topic: str, event: Event) -> None:
            await asyncio.sleep(0)
            told.append((topic, event.id))

        client.add_publish_listener(slow)

        await client.publish(queue.inbox().topic, event("m1"))

        assert told == [(queue.inbox().topic, "m1")]

    @pytest.mark.spec("E-190")
    async def test_the_message_is_stored_before_a_listener_hears_of_it(self, queue: QueueHarness) -> None:
        client = await queue.client()
        stored: list[int] = []
        await client.ensure_subscription(queue.inbox())

        async def looks(topic: str, event: Event) -> None:
            stored.append(await queue.retained(topic))

        client.add_publish_listener(looks)

        await client.publish(queue.inbox().topic, event("m1"))

        assert stored == [1]

    @pytest.mark.spec("E-193")
    async def test_a_listener_sees_the_event_as_it_was_stamped(self, queue: QueueHarness) -> None:
        client = await queue.client("north")
        seen: list[Event] = []

        async def keeps(topic: str, event: Event) -> None:
            seen.append(event)

        client.add_publish_listener(keeps)

        stamped = await client.publish(queue.inbox().topic, event("m1"))

        assert seen == [stamped]
        assert seen[0].node == "north"

    @pytest.mark.spec("E-191")
    async def test_a_failing_listener_fails_neither_the_publish_nor_the_next_listener(
        self, queue: QueueHarness
    ) -> None:
        client, handler = await queue.client(), Recorder()
        told: list[str] = []

        async def fails(topic: str, event: Event) -> None:
            raise RuntimeError("no room on the disk")

        async def keeps(topic: str, event: Event) -> None:
            told.append(event.id)

        client.add_publish_listener(fails)
        client.add_publish_listener(keeps)
        await client.subscribe(queue.inbox(), handler)

        await client.publish(queue.inbox().topic, event("m1"))

        await handler.handled(1)
        assert told == ["m1"]

    async def test_a_removed_listener_hears_nothing_more(self, queue: QueueHarness) -> None:
        client = await queue.client()
        told: list[str] = []

        async def keeps(topic: str, event: Event) -> None:
            told.append(event.id)

        remove = client.add_publish_listener(keeps)
        await client.publish(queue.inbox().topic, event("m1"))

        remove()
        remove()
        await client.publish(queue.inbox().topic, event("m2"))

        assert told == ["m1"]

    async def test_a_listener_hears_its_own_process_alone(self, queue: QueueHarness) -> None:
        here, there = await queue.client("here"), await queue.client("there")
        told: list[str] = []

        async def keeps(topic: str, event: Event) -> None:
            told.append(event.id)

        here.add_publish_listener(keeps)

        await there.publish(queue.inbox().topic, event("elsewhere"))
        await here.publish(queue.inbox().topic, event("m1"))

        assert told == ["m1"]
