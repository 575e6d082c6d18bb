"""The record store's twin: one bucket object that any number of clients share, with a switch that cuts them off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from crewlet import topics
from crewlet.backends.memory.record_watch import MemoryWatch
from crewlet.base.clock import Clock
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import Change, Record, Revision, Slot, StoreTime, checked_key, checked_pattern

__all__ = ["MemoryBucket", "MemoryRecordStore"]


class MemoryBucket:
    """What the broker would hold of one slot, on a clock of its own. While ``cut``, no client of it hears anything."""

    def __init__(self, slot: Slot, clock: Clock) -> None:
        self.slot = slot
        self._cut = False
        self._clock = clock
        self._records: dict[str, Record] = {}
        self._markers: dict[str, Change] = {}
        self._removed_at: dict[str, datetime] = {}
        self._watches: list[MemoryWatch] = []
        self._last_revision = 0

    @property
    def cut(self) -> bool:
        """Whether no client hears anything."""
        return self._cut

    @cut.setter
    def cut(self, cut: bool) -> None:
        self._cut = cut
        if cut:
            for watch in [*self._watches]:
                watch.end()

    def now(self) -> datetime:
        """The bucket's own time."""
        return self._clock.now()

    def live(self, key: str) -> Record | None:
        """The record under ``key``, unless its age has passed."""
        record = self._records.get(key)
        if record is None or self.slot.age_s is None:
            return record
        if record.written_at + timedelta(seconds=self.slot.age_s) > self._clock.now():
            return record
        del self._records[key]
        return None

    def matching(self, *patterns: str) -> list[Record]:
        """The live records under any of the patterns."""
        keys = [key for key in self._records if any(topics.matches(pattern, key) for pattern in patterns)]
        return [record for key in keys if (record := self.live(key)) is not None]

    def newest(self) -> Revision:
        """The revision of the newest message held, a marker's included; 0 for none."""
        held = [record.revision for key in [*self._records] if (record := self.live(key)) is not None]
        return max([*held, *(marker.revision for marker in self._markers.values())], default=Revision(0))

    def write(self, key: str, value: bytes) -> Record:
        """Store ``value`` under the next revision."""
        record = Record(key, value, self._next_revision(), self._clock.now())
        self._records[key] = record
        self._markers.pop(key, None)
        self._tell(Change(key, record, record.revision))
        return record

    def remove(self, key: str) -> None:
        """Leave a removal marker, with a revision of its own as every write has."""
        marker = Change(key, None, self._next_revision())
        self._records.pop(key, None)
        self._markers[key], self._removed_at[key] = marker, self._clock.now()
        self._tell(marker)

    def purge_markers(self, before: datetime) -> int:
        """Forget the markers written before this."""
        old = [key for key in self._markers if self._removed_at[key] < before]
        for key in old:
            del self._markers[key], self._removed_at[key]
        return len(old)

    def attach(self, watch: MemoryWatch) -> None:
        """Every write from now on is told to ``watch``."""
        self._watches.append(watch)

    def detach(self, watch: MemoryWatch) -> None:
        """No write is told to ``watch`` any more."""
        if watch in self._watches:
            self._watches.remove(watch)

    def _tell(self, change: Change) -> None:
        for watch in self._watches:
            watch.tell(change)

    def _next_revision(self) -> Revision:
        self._last_revision += 1
        return Revision(self._last_revision)


class MemoryRecordStore:
    """One client of a bucket; see ``RecordStore`` for what each verb promises."""

    def __init__(self, bucket: MemoryBucket) -> None:
        self._bucket = bucket

    @property
    def name(self) -> str:
        """The slot's name."""
        return self._bucket.slot.name

    @property
    def age_s(self) -> float | None:
        """The slot's age."""
        return self._bucket.slot.age_s

    async def get(self, key: str) -> Record | None:
        """The live record, or ``None``."""
        bucket = await self._reach_key(key)
        return bucket.live(key)

    async def create(self, key: str, value: bytes) -> Record:
        """Write only where the key is not live."""
        bucket = await self._reach_key(key)
        _expect(bucket, key, 0)
        return bucket.write(key, value)

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        """Write only over ``expected``."""
        bucket = await self._reach_key(key)
        _expect(bucket, key, expected)
        return bucket.write(key, value)

    async def delete(self, key: str, *, expected: Revision) -> None:
        """Remove only ``expected``; an absent key is no error."""
        bucket = await self._reach_key(key)
        if bucket.live(key) is None:
            return
        _expect(bucket, key, expected)
        bucket.remove(key)

    async def list(self, pattern: str) -> list[Record]:
        """Every live record under ``pattern``."""
        checked_pattern(pattern)
        return (await self._reach()).matching(pattern)

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[MemoryWatch]:
        """The live records, then every write."""
        for pattern in patterns:
            checked_pattern(pattern)
        bucket = await self._reach()
        watch = MemoryWatch(patterns, bucket.matching(*patterns), bucket.newest(), name=self.name)
        bucket.attach(watch)
        try:
            yield watch
        finally:
            bucket.detach(watch)
            watch.end()

    async def last_revision(self) -> Revision:
        """The newest message's revision."""
        return (await self._reach()).newest()

    async def purge_markers(self, *, before: datetime) -> int:
        """Forget old markers."""
        return (await self._reach()).purge_markers(before)

    async def time(self) -> StoreTime:
        """The bucket's time, exactly."""
        now = (await self._reach()).now()
        return StoreTime(now, now)

    async def _reach_key(self, key: str) -> MemoryBucket:
        checked_key(key)
        return await self._reach()

    async def _reach(self) -> MemoryBucket:
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
