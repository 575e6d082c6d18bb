"""The live stream's middle: one feed from the broker, open while somebody watches, handed to every socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

import structlog

from crewlet.api.config import ApiLimits
from crewlet.api.frames import event_frame, frame, health_frame
from crewlet.api.outbox import Outbox
from crewlet.base import limits as bounds
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.events import Event
from crewlet.node.face import NodeFace
from crewlet.queue import StreamSubscription

__all__ = ["Hub", "StreamFull"]

_log = structlog.get_logger(__name__)


class StreamFull(CrewletError):
    """As many sockets watch as the node serves."""


class Hub:
    """Every socket of this process, and the one feed they share."""

    def __init__(self, face: NodeFace, clock: Clock, limits: ApiLimits) -> None:
        self._face = face
        self._clock = clock
        self._limits = limits
        self._tasks = Tasks("api-stream")
        self._watching: set[Outbox] = set()
        self._feed: _Feed | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._closing = False
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._watching)

    @property
    def closing(self) -> bool:
        """Whether the API stops: no socket is taken any more."""
        return self._closing

    @contextmanager
    def watching(self) -> Generator[Outbox]:
        """An outbox that gets every frame while it is held. Raises ``StreamFull``."""
        if len(self._watching) >= self._limits.stream_clients_max:
            raise StreamFull(f"{self._limits.stream_clients_max} sockets watch already")
        outbox = Outbox(frames_max=self._limits.stream_queue_max, bytes_max=self._limits.stream_queue_max_bytes)
        self._watching.add(outbox)
        self._empty.clear()
        try:
            yield outbox
        finally:
            self._watching.discard(outbox)
            if not self._watching:
                self._empty.set()
                self._end_feed()

    async def wait_empty(self) -> None:
        """Return once no socket is left."""
        await self._empty.wait()

    async def fed(self) -> None:
        """Return once the feed runs: what is published from here on reaches the outboxes. Raises ``Unavailable``."""
        if self._feed is None:
            self._feed = _Feed(self._face, self._spread, self._tasks)
            self._tasks.start("health", self._tell_health(self._feed))
        feed = self._feed
        try:
            async with asyncio.timeout(bounds.STREAM_OPEN_TIMEOUT_S):
                await feed.wait_open()
        except TimeoutError:
            raise Unavailable("the feed of events did not open in time") from None
        except CrewletError:
            # The next socket tries anew.
            if self._feed is feed:
                self._end_feed()
            raise

    def say(self, kind: str, **data: object) -> None:
        """One frame of the node's own to everybody."""
        self._put(frame(kind, data, self._clock.now()))

    def hello(self) -> str:
        """The first frame of a socket."""
        return health_frame(self._face.health(), self._clock.now())

    def reply(self, kind: str, **data: object) -> str:
        """A frame for one socket."""
        return frame(kind, data, self._clock.now())

    def end_sockets(self) -> None:
        """Give every socket its last frame; each closes once it has sent what waits."""
        self._closing = True
        last = frame("closing", {"reason": "the node stops"}, self._clock.now())
        for outbox in self._watching:
            outbox.close(last)

    async def close(self) -> None:
        """End the feed and every task."""
        self._closing = True
        self._end_feed()
        try:
            async with asyncio.timeout(bounds.STREAM_OPEN_TIMEOUT_S):
                await asyncio.gather(*self._ending, return_exceptions=True)
        except TimeoutError:
            _log.warning("api_feed_not_ended")
        await self._tasks.close()

    def _end_feed(self) -> None:
        feed, self._feed = self._feed, None
        if feed is not None:
            ending = self._tasks.start("end-feed", feed.end())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    def _spread(self, topic: str, event: Event) -> None:
        self._put(event_frame(topic, event, self._clock.now()))

    def _put(self, text: str) -> None:
        for outbox in self._watching:
            outbox.put(text)

    async def _tell_health(self, feed: _Feed) -> None:
        while self._feed is feed:
            await asyncio.sleep(self._limits.stream_health_every_s)
            if self._feed is feed:
                self._put(health_frame(self._face.health(), self._clock.now()))


class _Feed:
    """One subscription. Ended, it delivers nothing more, even while the broker is still being told."""

    def __init__(self, face: NodeFace, spread: Callable[[str, Event], None], tasks: Tasks) -> None:
        self._spread = spread
        self._ended = False
        self._opening = tasks.start("open-feed", self._open(face))

    async def wait_open(self) -> None:
        # Shielded: a socket that leaves takes the feed from nobody else.
        opened = await asyncio.shield(self._opening)
        if isinstance(opened, CrewletError):
            raise opened

    async def end(self) -> None:
        self._ended = True
        opened = (await asyncio.gather(self._opening, return_exceptions=True))[0]
        if not isinstance(opened, BaseException):
            await opened.close()

    async def _open(self, face: NodeFace) -> StreamSubscription | CrewletError:
        try:
            return await face.follow(self._deliver)
        except CrewletError as error:
            _log.warning("api_feed_not_opened", error=str(error))
            return error

    def _deliver(self, topic: str, event: Event) -> None:
        if not self._ended:
            self._spread(topic, event)
