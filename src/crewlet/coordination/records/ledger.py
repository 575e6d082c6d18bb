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
    """

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def worked(self, handle: str, ids: Iterable[str]) -> frozenset[str]:
        """Those of ``ids`` that are recorded for this seat; an id that could not be looked up is not among them."""
        asked = list(dict.fromkeys(ids))
        try:
            async with asyncio.timeout(limits.LEDGER_WAIT_S):
                known = await asyncio.gather(*(self._is_recorded(handle, each) for each in asked))
        except TimeoutError:
            _log.warning("ledger_unreadable", handle=handle, ids=len(asked), error="no answer in time")
            return frozenset()
        return frozenset(each for each, recorded in zip(asked, known, strict=True) if recorded)

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
        try:
            async with asyncio.timeout(limits.LEDGER_WAIT_S):
                await asyncio.gather(*(self._write(each) for each in completions))
        except TimeoutError:
            _log.warning("ledger_write_failed", handle=handle, turn_id=turn_id, error="no answer in time")

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


def _key(handle: str, trigger_id: str) -> str:
    return f"{key_token(handle)}.{key_token(trigger_id)}"
