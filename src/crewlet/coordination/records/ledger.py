"""The completion ledger: which triggers of a seat have been worked (S1). A record means done; done does not lapse."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord, decode_record, encode_record

__all__ = ["Completion", "Ledger"]

_log = structlog.get_logger(__name__)


class Completion(SharedRecord, frozen=True, kw_only=True):
    """That one trigger of one seat is finished with, by which turn, and how it ended."""

    handle: str
    id: str
    turn_id: str
    outcome: str
    recorded_at: datetime


class Ledger:
    """Completions by seat and trigger id.

    Fails open in both directions (C-008): what cannot be read counts as not worked, and what cannot be written
    changes nothing else, since the work has been done. Both are logged, and bounded by ``limits.LEDGER_WAIT_S``.

    What this process could not write it still knows: an outage that takes the record often takes the acknowledgement
    with it, and the delivery that comes back must not be worked again by the one process that knows better.
    """

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._unwritten: dict[tuple[str, str], Completion] = {}

    async def worked(self, handle: str, ids: Iterable[str]) -> frozenset[str]:
        """Those of ``ids`` that are recorded for this seat; an id that could not be looked up is not among them."""
        asked = list(dict.fromkeys(ids))
        ours = frozenset(each for each in asked if (handle, each) in self._unwritten)
        if ours:
            await self._write_all([self._unwritten[handle, each] for each in asked if each in ours])
        return ours | await self._looked_up(handle, [each for each in asked if each not in ours])

    async def completion(self, handle: str, trigger_id: str) -> Completion | None:
        """What is recorded for one trigger. Raises ``Unavailable``."""
        record = await self._store.get(_key(handle, trigger_id))
        return None if record is None else decode_record(Completion, record.value)

    async def record(self, handle: str, ids: Iterable[str], turn_id: str, outcome: str) -> None:
        """Each of ``ids`` is recorded as worked; the first record of an id stands."""
        now = self._clock.now()
        completions = [
            Completion(handle=handle, id=each, turn_id=turn_id, outcome=outcome, recorded_at=now)
            for each in dict.fromkeys(ids)
        ]
        await self._write_all(completions)

    async def _looked_up(self, handle: str, ids: list[str]) -> frozenset[str]:
        try:
            async with asyncio.timeout(limits.LEDGER_WAIT_S):
                if len(ids) == 1:
                    # By far the most often: no task for it.
                    known = [await self._is_recorded(handle, ids[0])]
                else:
                    known = await asyncio.gather(*(self._is_recorded(handle, each) for each in ids))
        except TimeoutError:
            _log.warning("ledger_unreadable", handle=handle, ids=len(ids), error="no answer in time")
            return frozenset()
        return frozenset(each for each, recorded in zip(ids, known, strict=True) if recorded)

    async def _write_all(self, completions: list[Completion]) -> None:
        for each in completions:
            self._unwritten[each.handle, each.id] = each
        while len(self._unwritten) > limits.LEDGER_UNWRITTEN_MAX:
            del self._unwritten[next(iter(self._unwritten))]
        try:
            async with asyncio.timeout(limits.LEDGER_WAIT_S):
                if len(completions) == 1:
                    await self._write(completions[0])
                else:
                    await asyncio.gather(*(self._write(each) for each in completions))
        except TimeoutError:
            turn_ids = sorted({each.turn_id for each in completions})
            _log.warning("ledger_write_failed", handle=completions[0].handle, turns=turn_ids, error="no answer in time")

    async def _is_recorded(self, handle: str, trigger_id: str) -> bool:
        try:
            return await self._store.get(_key(handle, trigger_id)) is not None
        except Unavailable as error:
            _log.warning("ledger_unreadable", handle=handle, id=trigger_id, error=str(error))
            return False

    async def _write(self, completion: Completion) -> None:
        try:
            await self._store.create(_key(completion.handle, completion.id), encode_record(completion))
        except Conflict:
            _log.debug("ledger_already_recorded", handle=completion.handle, id=completion.id)
        except Unavailable as error:
            _log.warning("ledger_write_failed", handle=completion.handle, id=completion.id, error=str(error))
            return
        self._unwritten.pop((completion.handle, completion.id), None)


def _key(handle: str, trigger_id: str) -> str:
    return f"{key_token(handle)}.{key_token(trigger_id)}"
