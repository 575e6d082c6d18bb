"""A process with leases over twins of the three buckets, its clock and its links within reach of a test."""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, cast

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.coordination import LEASE_PROTOCOL, KvLeases, Lease, RecordStore
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.testing import VirtualClock
from crewlet.testing.contracts.lease_steps import Steps
from crewlet.testing.ids import SeededIds

__all__ = ["TTL_S", "Process", "Rig", "SleepyClock"]

TTL_S = LEASES.age_s or 0.0


class SleepyClock(VirtualClock):
    """Counts the time that the machine slept, which the loop's own clock does not."""

    slept_s = 0.0

    def elapsed_s(self) -> float:
        return super().elapsed_s() + self.slept_s


@dataclass(frozen=True)
class Process:
    """Its leases, the stores under them, and how often it asked each of their verbs."""

    owner: str
    leases: KvLeases
    stores: tuple[MemoryRecordStore, MemoryRecordStore, MemoryRecordStore]
    asked: Counter[str]

    async def claimed(self, resource: str, ttl_s: float = TTL_S) -> Lease:
        lease = await self.leases.claim(resource, owner=self.owner, ttl_s=ttl_s, preferred=self.owner)
        assert isinstance(lease, Lease), lease
        return lease


@dataclass
class Rig:
    """The buckets, and any number of processes."""

    clock: SleepyClock = field(default_factory=SleepyClock)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    ids: SeededIds = field(default_factory=SeededIds)

    def __post_init__(self) -> None:
        self.buckets = [MemoryBucket(slot, self.clock, uncertainty_s=0.01) for slot in (LEASES, DUTIES, EPOCHS)]

    def process(self, node: str = "node-1", *, protocol: int = LEASE_PROTOCOL, steps: Steps | None = None) -> Process:
        twins = tuple(MemoryRecordStore(bucket) for bucket in self.buckets)
        asked = Counter[str]()
        stores = [counting(store if steps is None else steps.stepping(store), asked) for store in twins]
        leases = KvLeases(
            leases=stores[0], duties=stores[1], epochs=stores[2], clock=self.clock, ids=self.ids, protocol=protocol
        )
        self.stack.push_async_callback(leases.close)
        return Process(f"{node}:{self.ids.hex(8)}", leases, (twins[0], twins[1], twins[2]), asked)


def counting(store: RecordStore, asked: Counter[str]) -> RecordStore:
    """``store``, which counts what it is asked, by its own name and the verb's."""
    return cast("RecordStore", _Counting(store, asked))


class _Counting:
    def __init__(self, store: RecordStore, asked: Counter[str]) -> None:
        self._store = store
        self._asked = asked

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the store's verb, whatever it is
        found = getattr(self._store, name)
        if callable(found):
            self._asked[f"{self._store.name}.{name}"] += 1
        return found
