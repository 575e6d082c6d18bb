"""The coordination store of a node: every bucket of the table opened, and what it held remembered over restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import structlog

from crewlet import topics
from crewlet.backends.nats import NatsRecordStore, OpenedBucket, open_buckets
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.base.ids import Ids
from crewlet.base.tasks import Tasks
from crewlet.coordination import SLOTS, RecordStore, Slot, leases_slot
from crewlet.coordination.slots import LEASES
from crewlet.node.broker_access import BrokerAccess
from crewlet.node.remade_buckets import RemadeBuckets
from crewlet.store import BucketMark, BucketMarks

__all__ = ["lost_buckets", "lost_memory", "open_stores"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    slot: Slot
    bucket: OpenedBucket


async def open_stores(
    access: BrokerAccess,
    marks: BucketMarks,
    *,
    lease_ttl_s: float,
    replicas: int,
    clock: Clock,
    ids: Ids,
    stack: AsyncExitStack,
) -> Mapping[str, NatsRecordStore]:
    """A store for each slot of the table, by the slot's name.

    Where streams are on disk, a bucket that is not the one this node has known, or is younger than what this node has
    seen of it, is refused: a fence that starts again is none (trap 7). Streams in memory are expected to be new, at a
    start and whenever their broker comes back.

    Raises ``StartRefused``, ``Unavailable``.
    """
    slots = [leases_slot(lease_ttl_s) if slot is LEASES else slot for slot in SLOTS]
    buckets = await open_buckets(access.api, slots, storage=access.storage, replicas=replicas, ids=ids, clock=clock)
    found = [_Found(slot=slot, bucket=buckets[slot.name]) for slot in slots]
    if access.storage == "file":
        remembered = await marks.read()
        for each in found:
            _refuse_lost(remembered.get(topics.bucket(each.slot.name)), each)
        memory = _Memory(marks, found)
        await memory.remember()
        tasks = Tasks("bucket_marks")
        tasks.start("remember", memory.keep())
        stack.push_async_callback(memory.close, tasks)
    stores = {each.slot.name: each.bucket.store for each in found}
    if access.storage == "memory":
        remade = Tasks("remade_buckets")
        remade.start("remake", RemadeBuckets(access, slots, stores, replicas=replicas).run())
        stack.push_async_callback(remade.close)
    return stores


def lost_buckets(stores: Mapping[str, RecordStore]) -> str:
    """What to tell people of buckets that were lost behind a running node; empty where none was seen to be."""
    lost = [
        topics.bucket(name) for name, store in stores.items() if isinstance(store, NatsRecordStore) and store.is_lost
    ]
    return f"shared records are lost or replaced, and answered no more: {', '.join(lost)}" if lost else ""


def lost_memory(mark: BucketMark, *, created_at: object, last_revision: int) -> str:
    """What a bucket has lost of what ``mark`` remembers; empty where it has lost nothing."""
    if mark.created_at != created_at:
        return f"it was made at {created_at} and this node knows one made at {mark.created_at}"
    if last_revision < mark.last_revision:
        return f"it is at revision {last_revision} and this node has seen it at {mark.last_revision}"
    return ""


def _refuse_lost(mark: BucketMark | None, found: _Found) -> None:
    if mark is None:
        return
    bucket = found.bucket
    lost = lost_memory(mark, created_at=bucket.created_at, last_revision=bucket.last_revision)
    if lost and not bucket.led:
        raise Unavailable(
            f"the bucket {mark.bucket} has no leader now, and one copy of it lacks what this node has seen"
        )
    if lost:
        raise StartRefused(
            f"the bucket {mark.bucket} is not what it was: {lost}. The broker's store was emptied or replaced, and"
            " epochs that started again would fence nobody",
            "give the broker its own store back; to begin anew on purpose, give every node a new data_dir",
        )


class _Memory:
    """Writes down how far each bucket is, every now and then and at the end."""

    def __init__(self, marks: BucketMarks, found: Sequence[_Found]) -> None:
        self._marks = marks
        self._found = found
        self._seen = {each.slot.name: each.bucket.last_revision for each in found}

    async def remember(self) -> None:
        """Write the marks of what was seen so far."""
        await self._marks.write(
            BucketMark(topics.bucket(each.slot.name), each.bucket.created_at, self._seen[each.slot.name])
            for each in self._found
        )

    async def keep(self) -> None:
        """Look and remember, for ever."""
        while True:
            await asyncio.sleep(limits.BUCKETS_REMEMBERED_EVERY_S)
            await self._look_and_remember()

    async def close(self, tasks: Tasks) -> None:
        """Remember what stands at the end, if the broker says so soon."""
        await tasks.close()
        try:
            async with asyncio.timeout(limits.BUCKETS_REMEMBER_LAST_S):
                await self._look_and_remember()
        except TimeoutError:
            _log.warning("buckets_not_remembered", error="no answer in time")

    async def _look_and_remember(self) -> None:
        try:
            await asyncio.gather(*(self._look(each) for each in self._found))
            await self.remember()
        except Unavailable as error:
            _log.warning("buckets_not_remembered", error=str(error))

    async def _look(self, found: _Found) -> None:
        name = found.slot.name
        self._seen[name] = max(self._seen[name], await found.bucket.store.last_revision())
