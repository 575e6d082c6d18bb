"""The record store's suite on real brokers: one, or three members whose leaders step down in the middle of a case."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import ClassVar, Self

from crewlet import topics
from crewlet.backends.nats import JetStream, open_bucket
from crewlet.base.clock import SystemClock
from crewlet.coordination import RecordStore, Slot
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.linked_clients import LinkedClients
from crewlet.testing.contracts.record_harness import KEPT, SKEW_S, RecordHarness, ShiftedClock
from crewlet.testing.contracts.record_links import BUCKETS_ROOT, RecordLink

__all__ = ["ClusterRecords", "JetStreamRecords"]


class JetStreamRecords(LinkedClients[RecordStore], RecordHarness):
    """Real clients on a real broker; time passes as it does. An async context manager: all is gone at its end."""

    backend: ClassVar[str] = "one broker"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(ShiftedClock(SystemClock(), -SKEW_S))
        self._cluster = cluster
        self._stack = AsyncExitStack()
        self._links: dict[RecordStore, RecordLink] = {}
        self._streams: dict[str, None] = {}
        self._api: JetStream | None = None

    async def __aenter__(self) -> Self:
        """Dial the eye that looks behind the contract."""
        eye = await self._cluster.connect("eye")
        self._stack.push_async_callback(eye.close)
        self._api = JetStream(eye)
        self._stack.push_async_callback(self._tidy)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every client and take this case's buckets away."""
        await self._stack.aclose()

    @property
    def api(self) -> JetStream:
        """The broker, behind the contract."""
        assert self._api is not None, "inside the context"
        return self._api

    async def client(self, slot: Slot = KEPT) -> RecordStore:
        """A store over a connection of its own, to one member after another."""
        own = self.own(slot)
        number = len(self._links)
        link = await self._dial(f"client{number}", member=number % self._cluster.size, root=BUCKETS_ROOT)
        opened = await open_bucket(
            link.jetstream(),
            own,
            storage="file",
            ids=self.ids,
            replicas=self._cluster.size,
            clock=self.clock,
        )
        self._links[opened.store] = link
        self._streams[topics.bucket_stream(topics.bucket(own.name))] = None
        return opened.store

    async def advance(self, seconds: float) -> None:
        """Wait: the broker's time cannot be moved."""
        await asyncio.sleep(seconds)

    async def disturb(self) -> None:
        """One broker is not disturbed: what it does in a restart is tested apart."""

    async def _tidy(self) -> None:
        for stream in self._streams:
            await self.api.stream_delete(stream)


class ClusterRecords(JetStreamRecords):
    """The same on three members: a disturbance makes the leader of each of the case's buckets step down."""

    backend: ClassVar[str] = "three members"
    quiet_s: ClassVar[float] = 0.4

    async def disturb(self) -> None:
        """Other members lead the buckets afterwards."""
        for stream in self._streams:
            await self._cluster.step_down(self.api, stream)
