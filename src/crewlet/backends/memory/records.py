"""The record store's twin: one bucket object that any number of clients share, with a switch that cuts them off."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from crewlet.base.clock import Clock
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import Record, Revision, Slot, checked_key

__all__ = ["MemoryBucket", "MemoryRecordStore"]


class MemoryBucket:
    """What the broker would hold of one slot. While ``cut``, every client of it hears nothing."""

    def __init__(self, slot: Slot, clock: Clock) -> None:
        self.slot = slot
        self.cut = False
        self._clock = clock
        self._records: dict[str, Record] = {}
        self._last_revision = 0

    def live(self, key: str) -> Record | None:
        """The record under ``key``, unless its age has passed."""
        record = self._records.get(key)
        if record is None or self.slot.age_s is None:
            return record
        if record.written_at + timedelta(seconds=self.slot.age_s) > self._clock.now():
            return record
        del self._records[key]
        return None

    def write(self, key: str, value: bytes) -> Record:
        """Store ``value`` under the next revision."""
        record = Record(key, value, self._next_revision(), self._clock.now())
        self._records[key] = record
        return record

    def remove(self, key: str) -> None:
        """Take the record away; a removal has a revision of its own, as every write has."""
        self._next_revision()
        self._records.pop(key, None)

    def _next_revision(self) -> Revision:
        self._last_revision += 1
        return Revision(self._last_revision)


class MemoryRecordStore:
    """One client of a bucket; see ``RecordStore`` for what each verb promises."""

    def __init__(self, bucket: MemoryBucket) -> None:
        self._bucket = bucket

    async def get(self, key: str) -> Record | None:
        """The live record, or ``None``."""
        bucket = await self._reach(key)
        return bucket.live(key)

    async def create(self, key: str, value: bytes) -> Record:
        """Write only where the key is not live."""
        bucket = await self._reach(key)
        _expect(bucket, key, 0)
        return bucket.write(key, value)

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        """Write only over ``expected``."""
        bucket = await self._reach(key)
        _expect(bucket, key, expected)
        return bucket.write(key, value)

    async def delete(self, key: str, *, expected: Revision) -> None:
        """Remove only ``expected``; an absent key is no error."""
        bucket = await self._reach(key)
        if bucket.live(key) is None:
            return
        _expect(bucket, key, expected)
        bucket.remove(key)

    async def _reach(self, key: str) -> MemoryBucket:
        checked_key(key)
        # Others get their turn between a caller's read and its write, as they would over a network.
        await asyncio.sleep(0)
        if self._bucket.cut:
            raise Unavailable(f"{self._bucket.slot.name}: cut off")
        return self._bucket


def _expect(bucket: MemoryBucket, key: str, expected: int) -> None:
    live = bucket.live(key)
    current = 0 if live is None else int(live.revision)
    if current != expected:
        raise Conflict(key, expected=expected, current=current)
