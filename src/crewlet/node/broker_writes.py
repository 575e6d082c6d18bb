"""Whether the broker takes writes: one that answers and stores nothing is told of, and revived once it can be."""

from __future__ import annotations

import asyncio
import shutil

import structlog

from crewlet.base import limits
from crewlet.base.errors import MailboxFull, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.events import Event
from crewlet.node.broker_access import BrokerAccess
from crewlet.queue import EventQueue

__all__ = ["BrokerWrites"]

_log = structlog.get_logger(__name__)


class BrokerWrites:
    """Publishes, and watches what becomes of it.

    A stream whose disk was full once takes nothing any more until its broker is started again, whatever room there is
    by then, and answers everything else as before. So an embedded broker that stores nothing over a link that stands is
    restarted, as soon as its disk has room. Nothing is lost by that: what it acknowledged is on the disk.

    A member of a cluster is not: the write may have been refused by another one, which leads the stream, and two of
    three that start again together stop the third. Each is started again on its own word (``MemberWatch``).
    """

    def __init__(self, queue: EventQueue, access: BrokerAccess) -> None:
        self._queue = queue
        self._access = access
        self._tasks = Tasks("broker_writes")
        self.trouble = ""

    async def publish(self, topic: str, event: Event) -> Event:
        """As the queue does it. Raises what the queue raises."""
        try:
            stamped = await self._queue.publish(topic, event)
        except Unavailable as error:
            if isinstance(error, MailboxFull) and error.at_limit:
                # Whoever works the mailbox makes room; the broker is well.
                raise
            # Over a link that is down nothing can be said of the disk.
            if self._access.connection.connected:
                self._refused(str(error))
            raise
        self.trouble = ""
        return stamped

    async def publish_live(self, topic: str, event: Event) -> Event:
        """As the queue does it. Says nothing of the broker: what is acknowledged does."""
        return await self._queue.publish_live(topic, event)

    async def close(self) -> None:
        """Watch no longer."""
        await self._tasks.close()

    def _refused(self, why: str) -> None:
        broker = self._access.broker
        where = "" if broker is None or not broker.keeps_on_disk else f"; is the disk of {broker.directory} full?"
        if where and broker is not None and broker.is_member:
            where = "; `crewlet fleet` names a member that stores nothing"
        self.trouble = f"the broker takes no writes{where} ({why})"
        if not len(self._tasks):
            _log.error("broker_takes_no_writes", error=why)
            self._tasks.start("revive", self._revive())

    async def _revive(self) -> None:
        broker = self._access.broker
        if broker is None or not broker.keeps_on_disk or broker.is_member:
            return
        while True:
            if await self._has_room():
                break
            await asyncio.sleep(limits.BROKER_ROOM_CHECK_EVERY_S)
        _log.warning("broker_revived", store_dir=str(broker.directory))
        await broker.restart()
        self.trouble = ""
        # It has this long to show that it helped, before it is tried again.
        await asyncio.sleep(limits.BROKER_REVIVED_PAUSE_S)

    async def _has_room(self) -> bool:
        broker = self._access.broker
        if broker is None or broker.directory is None:
            return False
        try:
            usage = await asyncio.to_thread(shutil.disk_usage, broker.directory)
        except OSError:
            return False
        return usage.free >= limits.BROKER_ROOM_MIN_BYTES
