"""Which instant the writes of old work are made at, once the operation ledger has forgotten when it began (S0)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import change_stored, read_stored

__all__ = ["Rebase", "Rebases", "WorkInstant", "is_past_horizon", "rebased"]


class Rebase(SharedRecord, frozen=True, kw_only=True):
    """The instant of one unit of work, minted by the first attempt that found its beginning past the horizon."""

    work_key: str
    instant: datetime


@dataclass(frozen=True, slots=True)
class WorkInstant:
    """The instant that an attempt makes its writes at; ``is_rebased`` where that is not the beginning of the work."""

    at: datetime
    is_rebased: bool


def is_past_horizon(instant: datetime, *, now: datetime, margin_s: float = 0.0) -> bool:
    """Whether the operation ledger may have forgotten what was written at ``instant``, ``margin_s`` from now."""
    return now - instant > timedelta(seconds=limits.REBASE_HORIZON_S - margin_s)


def rebased(standing: Rebase | None, *, work_key: str, now: datetime) -> Rebase:
    """What an attempt inherits, or what it mints where there is nothing (any more) to inherit."""
    if standing is None:
        return Rebase(work_key=work_key, instant=now)
    return replace(standing, instant=now) if is_past_horizon(standing.instant, now=now) else standing


class Rebases:
    """The instants of work that began longer ago than the horizon, ``limits.REBASE_HORIZON_S``.

    Fails closed: an instant that is not known raises ``Unavailable``, and the attempt does not run; made at another
    instant, each write of the attempt before would be made a second time.
    """

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def instant(self, work_key: str, *, began_at: datetime) -> WorkInstant:
        """The instant for this attempt at the work: its beginning, or what the work was rebased to, by us or before.

        A beginning near the horizon is looked up and not rebased: a node whose clock is ahead may have done it.
        """
        now = self._clock.now()
        if is_past_horizon(began_at, now=now):
            stands = await change_stored(
                self._store, Rebase, _key(work_key), lambda standing: rebased(standing, work_key=work_key, now=now)
            )
            assert stands is not None, "the step above always wants a record"
            return WorkInstant(stands.record.instant, is_rebased=True)
        if is_past_horizon(began_at, now=now, margin_s=limits.REBASE_LOOKED_UP_FROM_S):
            standing = await read_stored(self._store, Rebase, _key(work_key))
            if standing is not None:
                return WorkInstant(standing.record.instant, is_rebased=True)
        return WorkInstant(began_at, is_rebased=False)


def _key(work_key: str) -> str:
    return f"work.{key_token(work_key)}"
