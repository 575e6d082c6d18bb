"""The record store's contract: a few verbs over one bucket, single reads by the stream's leader (S0)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NewType, Protocol

__all__ = ["Record", "RecordStore", "Revision"]

Revision = NewType("Revision", int)
"""The store's own sequence of a write; grows with every write to the bucket."""


@dataclass(frozen=True, slots=True)
class Record:
    """One live value: its key, its bytes, the revision that wrote it, and when, on the store's clock (UTC)."""

    key: str
    value: bytes
    revision: Revision
    written_at: datetime


class RecordStore(Protocol):
    """One bucket. Every verb answers what the store said or raises ``Unavailable``; unknown is never no (C-003).

    A write whose answer was lost is read back from the leader before anything is decided: it returns as written when
    the leader holds exactly what this call wrote, and raises ``Unavailable`` when that could not be read.
    """

    async def get(self, key: str) -> Record | None:
        """The live record, or ``None`` where the leader holds none. Raises ``Unavailable``."""
        ...

    async def create(self, key: str, value: bytes) -> Record:
        """Write only where the key is not live (never written, or removed). Raises ``Conflict``, ``Unavailable``."""
        ...

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        """Write only over ``expected``; the record's age starts again. Raises ``Conflict``, ``Unavailable``."""
        ...

    async def delete(self, key: str, *, expected: Revision) -> None:
        """Remove only ``expected``; an absent key is no error. Raises ``Conflict``, ``Unavailable``."""
        ...
