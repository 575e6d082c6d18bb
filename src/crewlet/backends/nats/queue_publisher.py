"""Publishing: the broker's acknowledgement first, then each listener of this process, in order (E-190 to E-193)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import NoReturn

import structlog

from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import STREAM_FULL, ApiError, full
from crewlet.backends.nats.queue_link import LinkWatch
from crewlet.backends.nats.queue_live_events import LiveEvents
from crewlet.backends.nats.streams import Streams
from crewlet.base import limits
from crewlet.base.errors import PayloadTooLarge, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.events import Event, encode
from crewlet.queue import PublishListener, message_identity

__all__ = ["Publisher", "message_id"]

_log = structlog.get_logger(__name__)


def message_id(topic: str, event: Event) -> str:
    """What the broker knows a publish by: one event on two topics of a stream is two messages, twice on one is one."""
    return f"{message_identity(event)}.{_digest(topic)}"


class Publisher:
    """The publishing half of the queue.

    A caller that is cancelled leaves nothing half told: what it had begun is finished in the background (the repeat is
    stored once, a listener may be told twice of one event, none is left out), and the cancellation travels on.
    """

    def __init__(
        self, api: JetStream, streams: Streams, link: LinkWatch, node: str, tasks: Tasks, whole: asyncio.Event
    ) -> None:
        self._api = api
        self._streams = streams
        self._link = link
        self._node = node
        self._tasks = tasks
        self._whole = whole
        self._live = LiveEvents(api.wire)
        self._listeners: dict[object, PublishListener] = {}
        self._closed = False

    def add_listener(self, listener: PublishListener) -> Callable[[], None]:
        """Await ``listener`` inside each publish from now on; returns what removes it."""
        registration = object()
        self._listeners[registration] = listener

        def remove() -> None:
            self._listeners.pop(registration, None)

        return remove

    async def open(self) -> None:
        """Hear what becomes of live events."""
        await self._live.open()

    def stop(self) -> None:
        """Finish nothing in the background any more."""
        self._closed = True

    async def close(self) -> None:
        """Stop, and hear no more of live events."""
        self.stop()
        await self._live.close()

    async def publish(self, topic: str, event: Event) -> Event:
        """Store the event, tell the listeners; the stamped copy. Raises as ``EventQueue.publish`` does."""
        stamped = event.stamped(self._node)
        payload = self._encoded(topic, stamped)
        try:
            await self._store(topic, stamped, payload)
            await self._tell(topic, stamped)
        except asyncio.CancelledError:
            if not self._closed:
                self._tasks.start("finish_publish", self._finish(topic, stamped, payload))
            raise
        return stamped

    async def publish_live(self, topic: str, event: Event) -> Event:
        """Hand it over, tell the listeners; the stamped copy. Raises as ``EventQueue.publish_live`` does."""
        stamped = event.stamped(self._node)
        payload = self._encoded(topic, stamped)
        await self._streams.stream_of(topic)
        if not self._whole.is_set():
            raise Unavailable(_not_whole(topic))
        await self._live.send(topic, payload)
        try:
            await self._tell(topic, stamped)
        except asyncio.CancelledError:
            if not self._closed:
                self._tasks.start("finish_publish", self._tell(topic, stamped))
            raise
        return stamped

    def _encoded(self, topic: str, event: Event) -> bytes:
        payload = encode(event)
        room = self._api.wire.max_payload_bytes - limits.PUBLISH_HEADER_RESERVE_BYTES
        if len(payload) > room > 0:
            # The reserve is what a dead letter's note needs beside the same payload.
            raise PayloadTooLarge(topic, size=len(payload), limit=room)
        return payload

    async def _finish(self, topic: str, event: Event, payload: bytes) -> None:
        try:
            await self._store(topic, event, payload)
        except Unavailable as error:
            _log.warning("cancelled_publish_unfinished", topic=topic, event_id=event.id, error=str(error))
        else:
            await self._tell(topic, event)

    async def _store(self, topic: str, event: Event, payload: bytes) -> None:
        await self._streams.stream_of(topic)
        for attempt in range(limits.PUBLISH_ATTEMPTS_MAX):
            if not self._whole.is_set():
                await self._made_whole(topic)
            try:
                await self._api.publish(topic, payload, message_id=message_id(topic, event))
            except ApiError as error:
                _refuse(topic, event, error)
            except Unavailable:
                # Unknown: the same id inside the broker's duplicate window is stored once.
                if attempt + 1 == limits.PUBLISH_ATTEMPTS_MAX:
                    raise
                await self._link.settled(attempt)
            else:
                return

    async def _made_whole(self, topic: str) -> None:
        """Return once streams that a broker lost have been made again with the mailboxes on them."""
        try:
            async with asyncio.timeout(limits.LINK_WAIT_S):
                await self._whole.wait()
        except TimeoutError:
            raise Unavailable(_not_whole(topic)) from None

    async def _tell(self, topic: str, event: Event) -> None:
        for listener in [*self._listeners.values()]:
            try:
                await listener(topic, event)
            except Exception:  # noqa: BLE001 - supervisor: telemetry must not be able to fail a publish (E-191)
                _log.exception("publish_listener_failed", topic=topic, event_id=event.id)


def _not_whole(topic: str) -> str:
    return f"{topic}: the streams that the broker lost are not made again yet"


def _refuse(topic: str, event: Event, error: ApiError) -> NoReturn:
    name = "mailbox_full" if error.err_code in STREAM_FULL else "publish_refused"
    _log.error(name, topic=topic, event_id=event.id, error=error.description, err_code=error.err_code)
    if error.err_code in STREAM_FULL:
        raise full(topic, error) from error
    raise Unavailable(f"{topic}: the broker refused the message: {error.description}") from error


@lru_cache(maxsize=4096)
def _digest(topic: str) -> str:
    return hashlib.sha256(topic.encode()).hexdigest()[:12]
