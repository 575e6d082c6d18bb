"""Promises about publishing: what is stored, for whom, how often, and with whose name on it."""

from __future__ import annotations

import pytest

from crewlet.queue import Subscription, put_back
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.queue_handlers import Recorder
from crewlet.testing.contracts.queue_harness import QueueHarness, event

__all__ = ["Publishing"]


class Publishing(Contract):
    """What is true after a publish."""

    @pytest.mark.spec("E-148")
    async def test_the_event_arrives_with_the_publishing_node_on_it(self, queue: QueueHarness) -> None:
        sender, receiver = await queue.client("north"), await queue.client("south")
        handler = Recorder()
        await receiver.subscribe(queue.inbox(), handler)

        returned = await sender.publish(queue.inbox().topic, event("m1", text="hello"))

        await handler.handled(1)
        arrived = handler.deliveries[0].event
        assert (arrived.id, arrived.node, arrived.payload) == ("m1", "north", {"text": "hello"})
        assert returned.node == "north"
        assert handler.deliveries[0].subscription == queue.inbox()

    @pytest.mark.spec("E-149")
    async def test_the_publishers_own_event_is_not_written_to(self, queue: QueueHarness) -> None:
        client = await queue.client("north")
        original = event("m1")

        stamped = await client.publish(queue.inbox().topic, original)

        assert stamped is not original
        assert not original.node

    @pytest.mark.spec("E-148")
    async def test_an_event_that_names_a_node_keeps_it(self, queue: QueueHarness) -> None:
        first, relay = await queue.client("first"), await queue.client("relay")
        handler = Recorder()
        await relay.subscribe(queue.inbox(), handler)

        await relay.publish(queue.inbox().topic, await first.publish(queue.inbox("other").topic, event("m1")))

        await handler.handled(1)
        assert handler.deliveries[0].event.node == "first"

    @pytest.mark.spec("E-020")
    async def test_what_no_mailbox_covers_is_gone(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()

        await client.publish(queue.inbox().topic, event("early"))
        await client.subscribe(queue.inbox(), handler)
        await client.publish(queue.inbox().topic, event("late"))

        await handler.handled(1)
        assert handler.ids == ["late"]

    async def test_one_event_twice_on_a_topic_is_stored_once(self, queue: QueueHarness) -> None:
        client = await queue.client()
        await client.ensure_subscription(queue.inbox())

        for _ in range(2):
            await client.publish(queue.inbox().topic, event("m1"))

        assert await queue.retained(queue.inbox().topic) == 1

    async def test_what_is_put_back_is_a_message_of_its_own_once(self, queue: QueueHarness) -> None:
        """Taken for a repeat of its first message, it would be gone with the acknowledgement of that one."""
        client = await queue.client()
        await client.ensure_subscription(queue.inbox())
        await client.publish(queue.inbox().topic, event("m1"))

        for _ in range(2):
            await client.publish(queue.inbox().topic, put_back(event("m1")))

        assert await queue.retained(queue.inbox().topic) == 2

    async def test_a_repeat_after_the_first_was_worked_is_no_new_message(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.subscribe(queue.inbox(), handler)
        await client.publish(queue.inbox().topic, event("m1"))
        await queue.emptied(queue.inbox())

        await client.publish(queue.inbox().topic, event("m1"))
        await client.publish(queue.inbox().topic, event("m2"))

        await handler.handled(2)
        assert handler.ids == ["m1", "m2"]

    async def test_one_event_on_two_topics_is_two_messages(self, queue: QueueHarness) -> None:
        client, elsewhere = await queue.client(), queue.inbox("bob")
        await client.ensure_subscription(queue.inbox())
        await client.ensure_subscription(elsewhere)

        await client.publish(queue.inbox().topic, event("m1"))
        await client.publish(elsewhere.topic, event("m1"))

        assert (await queue.retained(queue.inbox().topic), await queue.retained(elsewhere.topic)) == (1, 1)

    async def test_each_group_of_a_topic_gets_every_message(self, queue: QueueHarness) -> None:
        client, second_group = await queue.client(), Subscription(queue.inbox().topic, "audit")
        handler, auditor = Recorder(), Recorder()
        await client.subscribe(queue.inbox(), handler)
        await client.subscribe(second_group, auditor)

        await client.publish(queue.inbox().topic, event("m1"))
        await client.publish(queue.inbox().topic, event("m2"))

        await handler.handled(2)
        await auditor.handled(2)
        assert (handler.ids, auditor.ids) == (["m1", "m2"], ["m1", "m2"])

    @pytest.mark.spec("E-025")
    async def test_a_namespace_that_is_not_the_engines_has_mailboxes_too(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        foreign = Subscription(f"{queue.namespace}.orders.new", "shop")
        await client.publish(foreign.topic, event("early"))
        await client.ensure_subscription(foreign)
        await client.publish(foreign.topic, event("m1"))

        await client.subscribe(foreign, handler)

        await handler.handled(1)
        assert handler.ids == ["m1"]

    async def test_mail_outlives_the_client_that_published_it(self, queue: QueueHarness) -> None:
        sender, receiver = await queue.client("sender"), await queue.client("receiver")
        handler = Recorder()
        await sender.ensure_subscription(queue.inbox())
        await sender.publish(queue.inbox().topic, event("m1"))

        await queue.crash(sender)
        await queue.disturb()
        await receiver.subscribe(queue.inbox(), handler)

        await handler.handled(1)
