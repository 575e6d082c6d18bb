"""Publishing on the twin: the broker's acknowledgement first, then each listener of this client, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from crewlet.backends.memory.queue_broker import MemoryBroker
from crewlet.backends.memory.queue_line import Line
from crewlet.base import limits
from crewlet.base.errors import MailboxFull, PayloadTooLarge, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.events import Event, encode
from crewlet.queue import PublishListener, message_identity

__all__ = ["Publisher"]

_log = structlog.get_logger(__name__)


class Publisher:
    """The publishing half of one client.

    As on the real broker, a caller that is cancelled leaves nothing half told: what it had begun is finished in the
    background, where a listener may be told twice of one event.
    """

    def __init__(self, broker: MemoryBroker, line: Line, tasks: Tasks) -> None:
        self._broker = broker
        self._line = line
        self._tasks = tasks
        self._listeners: dict[object, PublishListener] = {}
        self._closed = False

    def add_listener(self, listener: PublishListener) -> Callable[[], None]:
        """Await ``listener`` inside each publish from now on; returns what removes it."""
        registration = object()
        self._listeners[registration] = listener

        def remove() -> None:
            self._listeners.pop(registration, None)

        return remove

    def close(self) -> None:
        """Finish nothing in the background any more."""
        self._closed = True

    async def publish(self, topic: str, event: Event) -> Event:
        """Store the event, tell the listeners; the stamped copy. Raises as ``EventQueue.publish`` does."""
        stamped = event.stamped(self._line.node)
        payload = self._encoded(topic, stamped)
        try:
            await self._store_and_tell(topic, stamped, payload)
        except asyncio.CancelledError:
            if not self._closed:
                self._tasks.start("finish_publish", self._finish(topic, stamped, payload))
            raise
        return stamped

    async def publish_live(self, topic: str, event: Event) -> Event:
        """Store the event if it can be, tell the listeners; the stamped copy. Raises as ``EventQueue.publish_live``."""
        stamped = event.stamped(self._line.node)
        payload = self._encoded(topic, stamped)
        self._line.check()
        try:
            self._broker.store(topic, payload)
        except MailboxFull as refused:
            _log.warning("live_events_lost", count=1, error=str(refused))
        try:
            await self._tell(topic, stamped)
        except asyncio.CancelledError:
            if not self._closed:
                self._tasks.start("finish_publish", self._tell(topic, stamped))
            raise
        return stamped

    def _encoded(self, topic: str, event: Event) -> bytes:
        payload = encode(event)
        room = self._broker.max_payload_bytes - limits.PUBLISH_HEADER_RESERVE_BYTES
        if len(payload) > room:
            raise PayloadTooLarge(topic, size=len(payload), limit=room)
        return payload

    async def _store_and_tell(self, topic: str, event: Event, payload: bytes) -> None:
        await self._line.reach()
        self._broker.store(topic, payload, message_id=f"{message_identity(event)}.{topic}")
        await self._tell(topic, event)

    async def _tell(self, topic: str, event: Event) -> None:
        for listener in [*self._listeners.values()]:
            try:
                await listener(topic, event)
            except Exception:  # noqa: BLE001 - supervisor: telemetry must not be able to fail a publish (E-191)
                _log.exception("publish_listener_failed", topic=topic, event_id=event.id)

    async def _finish(self, topic: str, event: Event, payload: bytes) -> None:
        try:
            await self._store_and_tell(topic, event, payload)
        except Unavailable as error:
            _log.warning("cancelled_publish_unfinished", topic=topic, event_id=event.id, error=str(error))
