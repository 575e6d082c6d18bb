"""The queue's suite on real brokers: one, or three members with a leader that steps down in the middle of a case."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import ClassVar, Self

from crewlet import topics
from crewlet.backends.nats import Connection, JetStream, JetStreamQueue
from crewlet.backends.nats.jetstream_types import StreamInfo
from crewlet.backends.nats.queue_dead_letters import DELIVERIES_HEADER, GROUP_HEADER, TOPIC_HEADER
from crewlet.base.errors import Unavailable
from crewlet.queue import EventQueue, QueueConfig, Subscription
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.queue_harness import SCALED, DeadLetter, QueueHarness

__all__ = ["ClusterHarness", "JetStreamHarness"]


class JetStreamHarness(QueueHarness):
    """Real clients on a real broker; time passes as it does. An async context manager: all is gone at its end."""

    backend: ClassVar[str] = "one broker"

    def __init__(self, cluster: Cluster, config: QueueConfig = SCALED) -> None:
        super().__init__(replace(config, replicas=cluster.size))
        self._cluster = cluster
        self._stack = AsyncExitStack()
        self._wires: dict[EventQueue, Connection] = {}
        self._api: JetStream | None = None

    async def __aenter__(self) -> Self:
        """Dial the eye that looks behind the contract."""
        eye = await self._cluster.connect("eye")
        self._stack.push_async_callback(eye.close)
        self._api = JetStream(eye)
        self._stack.push_async_callback(self._tidy)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every client, alive or crashed, and take this case's mailboxes away."""
        await self._stack.aclose()

    @property
    def api(self) -> JetStream:
        """The broker, behind the contract."""
        assert self._api is not None, "inside the context"
        return self._api

    async def client(self, node: str = "one") -> EventQueue:
        """A queue over a connection of its own."""
        wire = await self._cluster.connect(node)
        self._stack.push_async_callback(wire.close)
        queue = JetStreamQueue(wire, JetStream(wire), node=node, config=self.config)
        self._stack.push_async_callback(queue.close)
        await queue.start()
        self._wires[queue] = wire
        return queue

    async def crash(self, client: EventQueue) -> None:
        """The link ends under the client, which says nothing any more."""
        await self._wires[client].close()

    async def advance(self, seconds: float) -> None:
        """Wait: the broker's time cannot be moved."""
        await asyncio.sleep(seconds)

    def now_s(self) -> float:
        """The loop's clock."""
        return asyncio.get_running_loop().time()

    async def disturb(self) -> None:
        """One broker is not disturbed: what it does in a restart is tested apart."""

    async def publish_raw(self, topic: str, payload: bytes) -> None:
        """Store the bytes."""
        await self.api.publish(topic, payload)

    async def retained(self, topic: str) -> int:
        """Ask the stream's leader."""
        info = await self._stream(topic)
        return (info.state.subjects or {}).get(topic, 0) if info is not None else 0

    async def held(self, subscription: Subscription) -> int:
        """Ask the consumer's leader."""
        stream = topics.namespace_stream(subscription.topic)
        assert stream is not None
        info = await self.api.consumer_info(stream, topics.durable_name(subscription.topic, subscription.group))
        return info.num_ack_pending if info is not None else 0

    async def dead_letters(self, subscription: Subscription) -> list[DeadLetter]:
        """Read the dead-letter stream from its leader."""
        subject = topics.dead_letter(subscription.topic, subscription.group)
        info = await self._stream(subject)
        if info is None or not info.state.subjects:
            return []
        stored = [
            await self.api.message(info.config.name, seq)
            for seq in range(info.state.first_seq, info.state.last_seq + 1)
        ]
        return [
            DeadLetter(
                message.data,
                message.headers[TOPIC_HEADER],
                message.headers[GROUP_HEADER],
                int(message.headers[DELIVERIES_HEADER]),
            )
            for message in stored
            if message is not None and message.subject == subject
        ]

    async def _stream(self, topic: str) -> StreamInfo | None:
        stream = topics.namespace_stream(topic)
        assert stream is not None
        return await self.api.stream_info(stream, subjects_filter=topic)

    async def _tidy(self) -> None:
        # A courtesy to the cases that follow: their names are their own.
        with contextlib.suppress(Unavailable):
            await self._forget_names()

    async def _forget_names(self) -> None:
        own = f"-{self._case}."
        for info in await self.api.consumer_infos(topics.STREAM_AGENT):
            if own in info.config.filter_subject:
                await self.api.consumer_delete(topics.STREAM_AGENT, info.name)
        alien = topics.namespace_stream(self.namespace)
        assert alien is not None
        await self.api.stream_delete(alien)


class ClusterHarness(JetStreamHarness):
    """The same on three members: a disturbance makes the leader of the mailboxes' stream step down."""

    backend: ClassVar[str] = "three members"
    quiet_s: ClassVar[float] = 0.4

    async def disturb(self) -> None:
        """Another member leads the stream of the mailboxes afterwards."""
        await self._cluster.step_down(self.api, topics.STREAM_AGENT)
