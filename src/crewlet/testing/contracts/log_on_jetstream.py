"""The log's suite on real brokers: one, or three members whose leader steps down in the middle of a case."""

from __future__ import annotations

import contextlib
from contextlib import AsyncExitStack
from typing import ClassVar, Final, Self

from crewlet import topics
from crewlet.backends.nats import JetStream, JetStreamLog
from crewlet.backends.nats.log_parts import LogPart, cut
from crewlet.backends.nats.streams import Streams
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.queue import Log, LogRecord, QueueConfig
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.linked_clients import LinkedClients
from crewlet.testing.contracts.log_harness import APPEND_S, PART_BYTES, ROOM_BYTES, Fragment, LogHarness
from crewlet.testing.contracts.record_links import RecordLink
from crewlet.testing.ids import SeededIds

__all__ = ["ClusterLogs", "JetStreamLogs"]

_STREAM: Final = topics.STREAM_JOURNAL


class JetStreamLogs(LinkedClients[Log], LogHarness):
    """Real clients on a real broker. An async context manager: all is gone at its end."""

    backend: ClassVar[str] = "one broker"

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster
        self._ids = SeededIds(self._case)
        self._stack = AsyncExitStack()
        self._links: dict[Log, RecordLink] = {}
        self._api: JetStream | None = None
        self._streams: Streams | None = None

    async def __aenter__(self) -> Self:
        """Dial the eye that looks behind the contract, and have the stream."""
        eye = await self._cluster.connect("eye")
        self._stack.push_async_callback(eye.close)
        self._api = JetStream(eye)
        self._streams = Streams(self._api, QueueConfig(replicas=self._cluster.size), "file")
        await self._streams.provision()
        self._stack.push_async_callback(self._tidy)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every client and take this case's logs away."""
        await self._stack.aclose()

    @property
    def api(self) -> JetStream:
        """The broker, behind the contract."""
        assert self._api is not None, "inside the context"
        return self._api

    async def client(self) -> Log:
        """A log over a connection of its own, to one member after another."""
        number = len(self._links)
        link = await self._dial(
            f"client{number}", member=number % self._cluster.size, root=topics.journal("-").rstrip("-")
        )
        log = JetStreamLog(link.jetstream(), ids=self._ids, append_s=APPEND_S, part_max_bytes=PART_BYTES)
        self._stack.callback(log.close)
        self._links[log] = link
        return log

    async def leave(self, seat: str, fragment: Fragment) -> int:
        """Published by nobody's log."""
        whole = cut([LogRecord("end", bytes(100))], write=self._ids.hex(16), room=80)
        nonsense = LogPart(write=self._ids.hex(16), number=1, count=1)
        match fragment:
            case "beginning":
                part, data = whole[0]
                headers = part.headers()
            case "end":
                part, data = whole[1]
                headers = part.headers()
            case "garbage":
                headers, data = {"Crewlet-Part": "x"}, b"garbage"
            case "unreadable":
                headers, data = nonsense.headers(), b"\xc1 is never used"
        return (await self.api.publish(topics.journal(seat), data, headers=headers)).seq

    async def fill(self) -> None:
        """The stream gets as large as it is, and a little more."""
        info = await self.api.stream_info(_STREAM)
        assert info is not None
        await self.api.stream_change(_STREAM, {"max_bytes": info.state.bytes + ROOM_BYTES})

    async def make_room(self) -> None:
        """It gets as large as it was."""
        await self.api.stream_change(_STREAM, {"max_bytes": limits.JOURNAL_STREAM_BYTES})

    async def lose(self) -> None:
        """The stream is deleted, and made again as the queue does it."""
        assert self._streams is not None, "inside the context"
        await self.api.stream_delete(_STREAM)
        await self._streams.provision_again()

    async def disturb(self) -> None:
        """One broker is not disturbed: what it does in a restart is tested apart."""

    async def _tidy(self) -> None:
        # A courtesy to the cases that follow: their seats are their own.
        with contextlib.suppress(Unavailable):
            await self.make_room()
            for seat in (self.seat, self.other):
                await self.api.stream_purge(_STREAM, subject=topics.journal(seat))


class ClusterLogs(JetStreamLogs):
    """The same on three members: a disturbance makes the leader of the journal step down."""

    backend: ClassVar[str] = "three members"

    async def disturb(self) -> None:
        """Another member leads the journal afterwards."""
        await self._cluster.step_down(self.api, _STREAM)
