"""Which data node keeps a batch of events that a node without a log of its own handed over (S0)."""

from __future__ import annotations

from datetime import datetime

from crewlet.base.clock import Clock
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import first_stored, read_stored

__all__ = ["Custodies", "Custody"]


class Custody(SharedRecord, frozen=True, kw_only=True):
    """That one data node keeps one batch."""

    batch_id: str
    keeper: str
    claimed_at: datetime


class Custodies:
    """Claims on batches, made once and never changed; each goes by the bucket's age alone.

    Nothing here fails open or closed by itself: every verb raises ``Unavailable``. Until it is known whose a batch is,
    who wrote it neither deletes it nor takes it for its own, and asks again.

    A batch is claimed after it was written: who died in between has claimed nothing. A ``keeper`` is the name of a node
    and its database, the same after a restart: asked again, it learns that the batch is its own.
    """

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def claim(self, batch_id: str, *, keeper: str) -> Custody:
        """Who keeps the batch: ``keeper``, unless another was first. Raises ``Unavailable``."""
        wanted = Custody(batch_id=batch_id, keeper=keeper, claimed_at=self._clock.now())
        return (await first_stored(self._store, _key(batch_id), wanted)).record

    async def standing(self, batch_id: str) -> Custody | None:
        """Who keeps the batch, or ``None`` where nobody claimed it. Raises ``Unavailable``."""
        standing = await read_stored(self._store, Custody, _key(batch_id))
        return None if standing is None else standing.record


def _key(batch_id: str) -> str:
    return f"batch.{key_token(batch_id)}"
