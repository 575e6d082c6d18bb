"""The record store's suite on the twin: clients of one bucket object, on a loop whose time jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar, Self

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.coordination import RecordStore, Slot
from crewlet.testing.contracts.record_harness import KEPT, SKEW_S, RecordHarness, ShiftedClock
from crewlet.testing.virtual_time import VirtualClock

__all__ = ["MemoryRecords"]

_UNCERTAINTY_S = 0.02


class MemoryRecords(RecordHarness):
    """Twins on bucket objects. ``sabotage`` plants a fault into each client as it is made."""

    backend: ClassVar[str] = "twin"

    def __init__(self, *, sabotage: Callable[[MemoryRecordStore], RecordStore] = lambda twin: twin) -> None:
        super().__init__(VirtualClock())
        self._sabotage = sabotage
        self._buckets: dict[str, MemoryBucket] = {}
        self._twins: dict[RecordStore, MemoryRecordStore] = {}

    async def __aenter__(self) -> Self:
        """Nothing has to be made first."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing stays."""

    async def client(self, slot: Slot = KEPT) -> RecordStore:
        """A client of the bucket object."""
        own = self.own(slot)
        clock = ShiftedClock(self.clock, SKEW_S)
        bucket = self._buckets.setdefault(own.name, MemoryBucket(own, clock, uncertainty_s=_UNCERTAINTY_S))
        twin = MemoryRecordStore(bucket)
        client = self._sabotage(twin)
        self._twins[client] = twin
        return client

    async def advance(self, seconds: float) -> None:
        """The loop jumps."""
        await asyncio.sleep(seconds)

    async def cut(self, *clients: RecordStore) -> None:
        """The twins have links that can be cut."""
        for client in clients:
            self._twins[client].link.cut = True

    async def mend(self, *clients: RecordStore) -> None:
        """They are whole again at once."""
        for client in clients:
            self._twins[client].link.cut = False

    def lose_reply(self, client: RecordStore) -> None:
        """The link loses it."""
        self._twins[client].link.lose_reply()

    def cut_after_write(self, client: RecordStore) -> None:
        """The link breaks between the two."""
        self._twins[client].link.cut_after_write()

    def withhold(self, client: RecordStore) -> None:
        """The link keeps it."""
        self._twins[client].link.withhold()

    async def deliver(self, client: RecordStore) -> None:
        """The link lets go of it."""
        self._twins[client].link.deliver()

    async def disturb(self) -> None:
        """There is nothing to survive."""
