"""What the record store's suite, and those of the slots over it, need of a backend.

A promise takes ``records: RecordHarness`` and asks it for clients of a bucket, each as another process would have it::

    async def test_what_one_node_writes_another_reads(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()

        written = await here.create("class.key", b"1")

        assert await there.get("class.key") == written

A slot's suite asks for its own slot, ``await records.client(replace(LEASES, age_s=2.0))``: the first client of a case
makes the bucket, the others adopt it, and no other case meets it. Ages are scaled by whoever asks; below two seconds a
broker is too coarse to tell young from old. What a client's process would read the time from is ``records.clock``, and
the store's clock is ahead of it by ``SKEW_S``, so that whoever takes one for the other is found out.

Bind a suite to a backend with a fixture ``records`` that yields ``MemoryRecords()``, ``JetStreamRecords(one_broker)``
or ``ClusterRecords(three_members)``, each an async context manager, and an empty subclass for each of its classes.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar, Final

from crewlet.base.clock import Clock
from crewlet.base.ids import Ids
from crewlet.coordination import RecordStore, Slot
from crewlet.testing.contracts.contract import Capability
from crewlet.testing.ids import SeededIds

__all__ = ["AGED", "KEPT", "SKEW_S", "RecordHarness", "ShiftedClock"]

KEPT: Final = Slot("kept", None, "records of the suite that stay")
AGED: Final = Slot("aged", 2.0, "records of the suite that go by themselves")
SKEW_S: Final = 90.0
"""How far the store's clock is ahead of the clients' clocks."""

_CASES: Final = itertools.count(1)


class RecordHarness(ABC):
    """One case's view of one backend. Its buckets are its own, so that cases may share a broker without meeting."""

    backend: ClassVar[str]
    absent: ClassVar[frozenset[Capability]] = frozenset()
    quiet_s: ClassVar[float] = 0.2
    """How long nothing may happen before a case believes that nothing will."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.ids: Ids = SeededIds()
        self._case = next(_CASES)

    @abstractmethod
    async def client(self, slot: Slot = KEPT) -> RecordStore:
        """One more client of the slot's bucket, on a link of its own."""

    @abstractmethod
    async def advance(self, seconds: float) -> None:
        """Let so much time pass: a jump where time is virtual."""

    @abstractmethod
    async def cut(self, *clients: RecordStore) -> None:
        """These clients reach nothing from now on, and know it."""

    @abstractmethod
    async def mend(self, *clients: RecordStore) -> None:
        """Undo :meth:`cut`; returns once the links stand."""

    @abstractmethod
    def lose_reply(self, client: RecordStore) -> None:
        """The client's next write lands and its answer is lost. Whoever looks afterwards gets an answer."""

    @abstractmethod
    def cut_after_write(self, client: RecordStore) -> None:
        """The client's next write lands, and its link is :meth:`cut` before the answer comes back."""

    @abstractmethod
    def withhold(self, client: RecordStore) -> None:
        """The client's next write does not arrive before :meth:`deliver`; its caller hears nothing in time."""

    @abstractmethod
    async def deliver(self, client: RecordStore) -> None:
        """What was withheld of the client's writes reaches the store now, long after its caller gave up."""

    @abstractmethod
    async def disturb(self) -> None:
        """Whatever this backend must survive without anybody noticing happens now; nothing where there is no such."""

    def now(self) -> datetime:
        """What the store's clock reads."""
        return self.clock.now() + timedelta(seconds=SKEW_S)

    async def quiet(self) -> None:
        """Long enough for whatever would happen to have happened."""
        await self.advance(self.quiet_s)

    def own(self, slot: Slot) -> Slot:
        """The slot under a name that no other case uses."""
        return replace(slot, name=f"{slot.name}_{self._case}")


class ShiftedClock:
    """A clock that reads another wall time than the one it stands on; elapsed time is the same."""

    def __init__(self, clock: Clock, shift_s: float) -> None:
        self._clock = clock
        self._shift = timedelta(seconds=shift_s)

    def now(self) -> datetime:
        """The other clock's time, shifted."""
        return self._clock.now() + self._shift

    def elapsed_s(self) -> float:
        """As the other clock counts it."""
        return self._clock.elapsed_s()
