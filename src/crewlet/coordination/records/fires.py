"""Which scheduled dispatches were claimed: the scheduler moves, and its successor must not dispatch again (S0)."""

from __future__ import annotations

from datetime import datetime

from crewlet.base.clock import Clock
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import first_stored, read_stored

__all__ = ["Fire", "Fires"]


class Fire(SharedRecord, frozen=True, kw_only=True):
    """One dispatch of one schedule to one seat, and the attempt at it that may go ahead.

    ``instant`` is the schedule's own name of the moment, on its own wall clock: the same on every node.
    """

    owner: str
    schedule: str
    instant: str
    target: str
    claimant: str
    claimed_at: datetime


class Fires:
    """Claims on dispatches, made once and never changed; each goes by the bucket's age alone.

    Fails closed: a claim that is not known to be won raises ``Unavailable``, and nothing may be dispatched on it.

    A ``claimant`` is one attempt at one dispatch, with an id of its own that it keeps while it asks again: so it learns
    that it has won after all. The name of a process would win each fire once more whenever the scheduler looks at it.
    """

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def claim(self, owner: str, schedule: str, instant: str, target: str, *, claimant: str) -> bool:
        """Whether this attempt may dispatch: it is the first. Raises ``Unavailable``."""
        wanted = Fire(
            owner=owner,
            schedule=schedule,
            instant=instant,
            target=target,
            claimant=claimant,
            claimed_at=self._clock.now(),
        )
        first = await first_stored(self._store, _key(owner, schedule, instant, target), wanted)
        return first.record.claimant == claimant

    async def standing(self, owner: str, schedule: str, instant: str, target: str) -> Fire | None:
        """The claim that was won, or ``None`` where nobody has one. Raises ``Unavailable``."""
        standing = await read_stored(self._store, Fire, _key(owner, schedule, instant, target))
        return None if standing is None else standing.record


def _key(*parts: str) -> str:
    return ".".join(("fire", *(key_token(part) for part in parts)))
