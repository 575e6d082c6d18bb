"""A live feed: one caller's ephemeral consumer, from now on, acknowledging nothing, made anew when it breaks."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import structlog

from crewlet.backends.nats.consumer_settings import delivery_mark
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import ApiError, ConsumerConfig, ConsumerInfo, ns
from crewlet.backends.nats.queue_link import LinkWatch
from crewlet.backends.nats.wire import Message, Unsubscribe, Wire
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks
from crewlet.events import MalformedEvent, decode
from crewlet.queue import StreamHandler, StreamSubscription

__all__ = ["LiveFeed"]

_log = structlog.get_logger(__name__)

_CONTROL: Final = "100"
_LAST_DELIVERED: Final = "Nats-Last-Consumer"
_STALLED: Final = "Nats-Consumer-Stalled"
_MISSED_HEARTBEATS: Final = 2.5


class LiveFeed(StreamSubscription):
    """Pushes every matching event to a handler.

    After a gap, a silence, a lost link or a reaped consumer it goes on behind the last event it saw, unless more than
    a bounded number were missed: a live view then goes on from now. The broker slows down to our pace
    (flow control), so a burst cannot fill the one connection that leases are renewed on.
    """

    def __init__(
        self,
        stream: str,
        pattern: str,
        handler: StreamHandler,
        *,
        wire: Wire,
        api: JetStream,
        link: LinkWatch,
        tasks: Tasks,
    ) -> None:
        self._stream = stream
        self._pattern = pattern
        self._handler = handler
        self._wire = wire
        self._api = api
        self._link = link
        self._tasks = tasks
        self._broken = asyncio.Event()
        self._inbox = ""
        self._consumer = ""
        self._unsubscribe: Unsubscribe | None = None
        self._delivered = 0
        self._position: int | None = None
        self._heard_at = 0.0
        self._keeper: asyncio.Task[None] | None = None
        self.closed = False
        self._unwatch = wire.on_reconnected(self._broken.set)

    async def open(self) -> None:
        """Start the feed; events published after this returned are fed. Raises ``Unavailable``."""
        try:
            await self._begin()
        except BaseException:
            self._unwatch()
            await self._end()
            raise
        self._keeper = self._tasks.start(f"live_feed:{self._pattern}", self._keep())

    async def close(self) -> None:
        """End the feed and its consumer; harmless when repeated."""
        self.closed = True
        self._unwatch()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        await self._end()

    async def _keep(self) -> None:
        failures = 0
        while True:
            await self._wait_broken()
            await self._end()
            try:
                await self._begin()
                failures = 0
            except (Unavailable, ApiError) as error:
                _log.warning("live_feed_waits", pattern=self._pattern, error=str(error))
                self._broken.set()
                await self._link.settled(failures)
                failures += 1

    async def _wait_broken(self) -> None:
        """Return once a gap was seen, the link is new, or nothing at all was heard for too long."""
        loop = asyncio.get_running_loop()
        patience_s = _MISSED_HEARTBEATS * limits.LIVE_FEED_HEARTBEAT_S
        while (left_s := self._heard_at + patience_s - loop.time()) > 0:
            try:
                async with asyncio.timeout(left_s):
                    await self._broken.wait()
            except TimeoutError:
                continue
            return

    async def _begin(self) -> None:
        self._broken.clear()
        info = await self._create(await self._resume_at())
        if self._position is not None and info.num_pending > limits.LIVE_FEED_REPLAY_MAX:
            _log.warning("live_feed_skipped", pattern=self._pattern, missed=info.num_pending)
            await self._end()
            info = await self._create(None)
        # Behind the last message there is, where it starts from now.
        self._position = max(self._position or 0, info.delivered.stream_seq)

    async def _resume_at(self) -> int | None:
        """The sequence to go on at, or ``None`` for now: at the start, and when the stream was made anew meanwhile."""
        if self._position is None:
            return None
        info = await self._api.stream_info(self._stream)
        if info is None or info.state.last_seq < self._position:
            self._position = None
            return None
        return self._position + 1

    async def _create(self, start_seq: int | None) -> ConsumerInfo:
        inbox = self._wire.new_inbox()
        self._inbox, self._delivered = inbox, 0
        self._consumer = "live-" + inbox.replace(".", "-")
        self._heard_at = asyncio.get_running_loop().time()
        self._unsubscribe = await self._wire.subscribe(inbox, partial(self._on_frame, inbox))
        settings = ConsumerConfig(
            name=self._consumer,
            deliver_policy="new" if start_seq is None else "by_start_sequence",
            opt_start_seq=start_seq or 0,
            ack_policy="none",
            filter_subject=self._pattern,
            deliver_subject=inbox,
            flow_control=True,
            idle_heartbeat=ns(limits.LIVE_FEED_HEARTBEAT_S),
            inactive_threshold=ns(limits.LIVE_FEED_IDLE_MAX_S),
            mem_storage=True,
            # Replicas are left to the broker: one, or the stream's own where interest retention insists on them.
        )
        try:
            return await self._api.consumer_create(self._stream, settings, action="create")
        except ApiError as error:
            raise Unavailable(f"{self._pattern}: {error.description}") from error

    async def _end(self) -> None:
        self._inbox = ""
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        if unsubscribe is not None:
            await unsubscribe()
        consumer, self._consumer = self._consumer, ""
        if consumer:
            try:
                await self._api.consumer_delete(self._stream, consumer)
            except (Unavailable, ApiError) as error:
                # The broker reaps it: nobody listens on its subject any more.
                _log.debug("live_feed_consumer_left", consumer=consumer, error=str(error))

    def _on_frame(self, inbox: str, message: Message) -> None:
        if inbox != self._inbox or self._broken.is_set():
            return
        self._heard_at = asyncio.get_running_loop().time()
        if not message.status:
            self._on_event(message)
        elif message.status == _CONTROL:
            self._on_control(message)
        else:
            self._broken.set()

    def _on_control(self, message: Message) -> None:
        answer_to = message.reply or message.headers.get(_STALLED, "")
        if answer_to:
            self._tasks.start("flow_control", self._go_on(answer_to))
        last = message.headers.get(_LAST_DELIVERED, "")
        if last.isdecimal() and int(last) != self._delivered:
            self._broken.set()

    async def _go_on(self, subject: str) -> None:
        try:
            await self._wire.publish(subject)
        except Unavailable:
            self._broken.set()

    def _on_event(self, message: Message) -> None:
        mark = delivery_mark(message.reply)
        if mark is None or mark.consumer_seq != self._delivered + 1:
            self._broken.set()
            return
        self._delivered = mark.consumer_seq
        self._position = mark.stream_seq
        try:
            event = decode(message.payload)
        except MalformedEvent as error:
            _log.warning("live_feed_unreadable", subject=message.subject, error=str(error))
            return
        try:
            self._handler(message.subject, event)
        except Exception:  # noqa: BLE001 - supervisor: one viewer's failure must not end the feed
            _log.exception("stream_handler_failed", pattern=self._pattern, event_id=event.id)
