"""The mailboxes of a whole company are made within bounds, and found again from the broker's list."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import msgspec
import pytest

from crewlet import topics
from crewlet.backends.nats import EmbeddedBroker, JetStream, JetStreamQueue
from crewlet.backends.nats.jetstream_types import ConsumerConfig, ConsumerInfo, ns
from crewlet.base import limits
from crewlet.queue import Subscription
from crewlet.testing.brokers import connected_wire, running_broker

pytestmark = pytest.mark.slow

# More than one page of the broker's list.
MANY = [Subscription(topics.agent_inbox(f"seat-{number}"), "agents") for number in range(300)]


class CountingJetStream(JetStream):
    """Counts what is made, and how many at once."""

    made = 0
    together = 0
    most = 0

    async def consumer_create(self, stream: str, config: ConsumerConfig, *, action: str = "") -> ConsumerInfo:
        self.made += 1
        self.together += 1
        self.most = max(self.most, self.together)
        try:
            return await super().consumer_create(stream, config, action=action)
        finally:
            self.together -= 1


class Nodes:
    """Clients of one broker."""

    def __init__(self, broker: EmbeddedBroker, stack: AsyncExitStack) -> None:
        self._broker = broker
        self._stack = stack

    async def node(self) -> tuple[JetStreamQueue, CountingJetStream]:
        api = CountingJetStream(await self._stack.enter_async_context(connected_wire(self._broker)))
        queue = JetStreamQueue(api.wire, api, node="node", storage=self._broker.storage)
        self._stack.push_async_callback(queue.close)
        await queue.start()
        api.made = 0
        return queue, api


@pytest.fixture
async def nodes() -> AsyncGenerator[Nodes]:
    async with AsyncExitStack() as stack:
        yield Nodes(await stack.enter_async_context(running_broker(in_memory=True)), stack)


async def names(api: JetStream) -> set[str]:
    return set(await api.consumer_names(topics.STREAM_AGENT))


async def test_a_large_company_makes_a_bounded_number_at_once(nodes: Nodes) -> None:
    queue, api = await nodes.node()

    await queue.ensure_subscriptions(MANY)

    assert await names(api) == {topics.durable_name(each.topic, each.group) for each in MANY}
    assert api.most == limits.MAILBOXES_CREATED_AT_ONCE


async def test_a_second_node_asks_for_none_that_is_there_as_it_should_be(nodes: Nodes) -> None:
    first, _ = await nodes.node()
    second, api = await nodes.node()
    await first.ensure_subscriptions(MANY[:-2])

    await second.ensure_subscriptions(MANY)

    assert api.made == 2
    assert len(await names(api)) == len(MANY)


async def test_one_among_many_that_differs_is_repaired(nodes: Nodes) -> None:
    first, api = await nodes.node()
    second, _ = await nodes.node()
    await first.ensure_subscriptions(MANY)
    durable = topics.durable_name(MANY[7].topic, MANY[7].group)
    before = await api.consumer_info(topics.STREAM_AGENT, durable)
    assert before is not None
    await api.consumer_create(topics.STREAM_AGENT, msgspec.structs.replace(before.config, ack_wait=ns(1.0)))

    await second.ensure_subscriptions(MANY)

    after = await api.consumer_info(topics.STREAM_AGENT, durable)
    assert after is not None
    assert after.config.ack_wait == before.config.ack_wait
