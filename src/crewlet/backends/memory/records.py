"""The record store's twin: any number of clients, each on a link of its own, share one bucket object."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from crewlet.backends.memory.record_bucket import MemoryBucket
from crewlet.backends.memory.record_link import MemoryLink
from crewlet.backends.memory.record_watch import MemoryWatch
from crewlet.coordination import Record, Revision, StoreTime, checked_key, checked_pattern

__all__ = ["MemoryBucket", "MemoryRecordStore"]

_STEPS_OF_A_LISTING = 4


class MemoryRecordStore:
    """One client of a bucket; see ``RecordStore`` for what each verb promises. ``link`` is there to be spoiled."""

    def __init__(self, bucket: MemoryBucket, link: MemoryLink | None = None) -> None:
        self.link = link or MemoryLink()
        self.bucket = bucket

    @property
    def name(self) -> str:
        """The slot's name."""
        return self.bucket.slot.name

    @property
    def age_s(self) -> float | None:
        """The slot's age."""
        return self.bucket.slot.age_s

    async def get(self, key: str) -> Record | None:
        """The live record, or ``None``."""
        checked_key(key)
        await self._reach()
        return self.bucket.live(key)

    async def create(self, key: str, value: bytes) -> Record:
        """Write only where the key is not live."""
        return await self._write(key, value, 0)

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        """Write only over ``expected``."""
        return await self._write(key, value, expected)

    async def delete(self, key: str, *, expected: Revision) -> None:
        """Remove only ``expected``; an absent key is no error."""
        checked_key(key)
        await self._reach()
        await self.link.write(
            self.name,
            lambda: self.bucket.remove(key, expected),
            landed=lambda _: self.bucket.live(key) is None,
        )

    async def list(self, pattern: str) -> list[Record]:
        """Every live record under ``pattern``, read while others write."""
        return await self._listed([checked_pattern(pattern)])

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[MemoryWatch]:
        """The live records, then every write."""
        for pattern in patterns:
            checked_pattern(pattern)
        watch = MemoryWatch(patterns, name=self.name, delay_s=self.link.watch_delay_s)
        unhook = self.link.on_cut(watch.end)
        self.bucket.attach(watch)
        try:
            newest = self.bucket.newest()
            watch.begin(await self._listed(patterns), newest)
            yield watch
        finally:
            self.bucket.detach(watch)
            unhook()
            watch.end()

    async def last_revision(self) -> Revision:
        """The newest message's revision."""
        await self._reach()
        return self.bucket.newest()

    async def purge_markers(self, *, before: datetime) -> int:
        """Forget old markers."""
        await self._reach()
        found = self.bucket.markers(before)
        await self._reach()
        return sum(self.bucket.purge(key, revision) for key, revision in found)

    async def time(self) -> StoreTime:
        """The bucket's time."""
        await self._reach()
        return self.bucket.time()

    async def _write(self, key: str, value: bytes, expected: int) -> Record:
        checked_key(key)
        await self._reach()
        return await self.link.write(
            self.name,
            lambda: self.bucket.write(key, value, expected),
            landed=lambda written: written is not None and self.bucket.live(key) == written,
        )

    async def _listed(self, patterns: Sequence[str]) -> list[Record]:
        """Every key that was live when it began, each as it is when its turn comes, which may be late (C-043)."""
        await self._reach()
        keys = self.bucket.keys(patterns)
        found: list[Record] = []
        for step in range(_STEPS_OF_A_LISTING):
            await self._reach()
            found.extend(self.bucket.all_live(keys[step::_STEPS_OF_A_LISTING]))
        return found

    async def _reach(self) -> None:
        await self.link.pass_over(self.name)
        self.bucket.check_reachable()
