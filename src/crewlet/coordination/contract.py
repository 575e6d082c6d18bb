"""The record store's contract: a few verbs over one bucket, single reads by the stream's leader (S0, D2)."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import NewType, Protocol

from crewlet.coordination.store_time import StoreTime

__all__ = ["Change", "Record", "RecordStore", "Revision", "Watch"]

Revision = NewType("Revision", int)
"""The store's own sequence of a write; grows with every write to the bucket."""


@dataclass(frozen=True, slots=True)
class Record:
    """One live value: its key, its bytes, the revision that wrote it, and when, on the store's clock (UTC)."""

    key: str
    value: bytes
    revision: Revision
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """One write after a watch's answer: ``record`` is what stands now, ``None`` where ``key`` was removed."""

    key: str
    record: Record | None
    revision: Revision


class Watch(Protocol):
    """A certified listing that goes on (C-034). Open it with ``RecordStore.watch``."""

    @property
    def answer(self) -> tuple[Record, ...]:
        """The listing that the watch began with."""
        ...

    @property
    def position(self) -> Revision:
        """The newest revision that the store has shown this watch, whether or not it was handed over; 0 for none."""
        ...

    async def next(self) -> Change:
        """The next change after the answer, none of them older than what the answer held of its key (C-038).

        A record that only grew too old makes no change. Raises ``Unavailable`` once the watch is over, for whatever
        reason: what changed since is not known, and another watch has to be opened.
        """
        ...


class RecordStore(Protocol):
    """One bucket. Every verb answers what the store said or raises ``Unavailable``; unknown is never no (C-003).

    A write whose answer was lost is read back from the leader before anything is decided: it returns as written when
    the leader holds exactly what this call wrote, and raises ``Unavailable`` when that could not be read.

    Keys are dotted tokens, of which the first is the class (a key of one token is a class of its own). A pattern is a
    key in which ``*`` stands for one token and a ``>`` at the end for one or more; its class is spelled out (C-058).
    Verbs raise ``ValueError`` for a key or a pattern that can address none.
    """

    @property
    def name(self) -> str:
        """The slot's name, for messages."""
        ...

    @property
    def age_s(self) -> float | None:
        """How long a record lives after its last write, as the bucket has it in force; ``None``: for ever."""
        ...

    async def get(self, key: str) -> Record | None:
        """The live record, or ``None`` where the leader holds none. Raises ``Unavailable``."""
        ...

    async def create(self, key: str, value: bytes) -> Record:
        """Write only where the key is not live (never written, or removed). Raises ``Conflict``, ``Unavailable``."""
        ...

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        """Write only over ``expected``; the record's age starts again. Raises ``Conflict``, ``Unavailable``.

        ``expected`` is a record's revision. What comes of a removal's, which a ``Change`` may tell, is not promised: a
        broker knows one last revision of a key, and would write over its marker.
        """
        ...

    async def delete(self, key: str, *, expected: Revision) -> None:
        """Remove only ``expected``; an absent key is no error. Raises ``Conflict``, ``Unavailable``."""
        ...

    async def list(self, pattern: str) -> list[Record]:
        """Every record under ``pattern`` that was live throughout, each key once, in no order; never fewer (C-012).

        What was written or removed meanwhile may be seen late. Raises ``Unavailable`` where any step failed.
        """
        ...

    def watch(self, *patterns: str) -> AbstractAsyncContextManager[Watch]:
        """A listing, then its changes from the very same pass. Entering it raises ``Unavailable`` as a listing does."""
        ...

    async def last_revision(self) -> Revision:
        """The newest message's revision at the leader, a marker's included; 0 for none. Raises ``Unavailable``."""
        ...

    async def purge_markers(self, *, before: datetime) -> int:
        """Take away the removal markers written before this (store time), through each marker's own revision (C-156).

        Returns how many. What one pass did not reach is left for another. Raises ``Unavailable``.
        """
        ...

    async def time(self) -> StoreTime:
        """What the store's clock says now, within bounds. Raises ``Unavailable`` where it could not be asked lately."""
        ...
