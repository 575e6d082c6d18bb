"""What the queue's tests on a real broker share: scaled-down clocks, events, nodes that can die."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

from crewlet import topics
from crewlet.backends.nats import Connection, EmbeddedBroker, JetStream, Wire, connect
from crewlet.backends.nats.queue import JetStreamQueue
from crewlet.events import Event
from crewlet.queue import QueueConfig, Subscription
from crewlet.testing.contracts.queue_handlers import Busy

SCALED = QueueConfig(
    ack_wait_s=20.0, max_deliver=4, nak_backoff_first_s=0.1, nak_backoff_max_s=0.4, event_retention_s=2 * 86400.0
)
INBOX = Subscription(topics.agent_inbox("ada"), topics.inbox_group("ada"))


def event(event_id: str, **payload: object) -> Event:
    return Event(id=event_id, type="probe", timestamp=datetime(2026, 1, 1, tzinfo=UTC), payload=payload)


@dataclass
class Node:
    """One process's worth of client."""

    wire: Connection
    api: JetStream
    queue: JetStreamQueue
    stranded: list[Subscription] = field(default_factory=list[Subscription])

    async def vanish(self) -> None:
        """Die as a killed process does: nothing is handed back, nothing is said."""
        await self.wire.close()

    async def held(self, subscription: Subscription = INBOX) -> int:
        """How many deliveries the mailbox counts as fetched and not settled."""
        info = await self.api.consumer_info(*place(subscription))
        assert info is not None
        return info.num_ack_pending

    async def stored(self, stream: str = topics.STREAM_AGENT) -> int:
        """How many messages a stream holds."""
        info = await self.api.stream_info(stream)
        assert info is not None
        return info.state.messages


class Company:
    """Nodes on one broker, all gone at the end."""

    def __init__(self, broker: EmbeddedBroker, stack: AsyncExitStack) -> None:
        self.broker = broker
        self._stack = stack

    async def node(
        self,
        name: str = "one",
        *,
        config: QueueConfig = SCALED,
        url: str = "",
        through: Callable[[Wire], Wire] = lambda wire: wire,
    ) -> Node:
        connection = await connect(url or self.broker.urls, seed=self.broker.seed, name=name)
        self._stack.push_async_callback(connection.close)
        wire = through(connection)
        api = JetStream(wire)
        stranded: list[Subscription] = []
        queue = JetStreamQueue(
            wire, api, node=name, config=config, storage=self.broker.storage, on_stranded=stranded.append
        )
        await queue.start()
        self._stack.push_async_callback(queue.close)
        return Node(connection, api, queue, stranded)


async def die_at_work(node: Node, event_id: str = "m1") -> None:
    """The node takes one delivery of ``INBOX`` and dies in the middle of it."""
    busy = Busy()
    await node.queue.subscribe(INBOX, busy)
    await node.queue.publish(INBOX.topic, event(event_id))
    await busy.entered.wait()
    await node.vanish()


def seats(count: int) -> list[Subscription]:
    return [Subscription(topics.agent_inbox(f"seat{n}"), topics.inbox_group(f"seat{n}")) for n in range(count)]


def place(subscription: Subscription) -> tuple[str, str]:
    stream = topics.namespace_stream(subscription.topic)
    assert stream is not None
    return stream, topics.durable_name(subscription.topic, subscription.group)


async def in_batches(calls: list[Callable[[], Awaitable[object]]]) -> None:
    await asyncio.gather(*(call() for call in calls))
