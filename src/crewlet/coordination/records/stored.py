"""A shared record as it stands in its bucket, and the one way to change it: only over what was read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination.contract import Record, RecordStore, Revision
from crewlet.coordination.records.codec import SharedRecord, decode_record, encode_record

__all__ = [
    "Stored",
    "change_stored",
    "first_stored",
    "list_stored",
    "put_stored",
    "read_stored",
    "remove_stored",
    "stored",
]

_RecordT = TypeVar("_RecordT", bound=SharedRecord)

_AT_ONCE: Final = (0.0,) * (limits.RECORD_CHANGE_ATTEMPTS_MAX - 1)


@dataclass(frozen=True, slots=True)
class Stored(Generic[_RecordT]):
    """A record, the revision that wrote it, and when that was on the store's clock."""

    key: str
    record: _RecordT
    revision: Revision
    written_at: datetime


def stored(kind: type[_RecordT], record: Record) -> Stored[_RecordT]:
    """The record in what the store holds. Raises ``Unavailable`` where this build cannot read it."""
    return Stored(record.key, decode_record(kind, record.value), record.revision, record.written_at)


async def read_stored(store: RecordStore, kind: type[_RecordT], key: str) -> Stored[_RecordT] | None:
    """The record under ``key``, or ``None`` where there is none. Raises ``Unavailable``."""
    record = await store.get(key)
    return None if record is None else stored(kind, record)


async def list_stored(store: RecordStore, kind: type[_RecordT], pattern: str) -> list[Stored[_RecordT]]:
    """Every record under ``pattern``, by key. Raises ``Unavailable``, also where one alone cannot be read (C-014)."""
    return [stored(kind, record) for record in sorted(await store.list(pattern), key=lambda each: each.key)]


async def change_stored(
    store: RecordStore,
    kind: type[_RecordT],
    key: str,
    step: Callable[[_RecordT | None], _RecordT | None],
    *,
    likely_absent: bool = False,
    pauses_s: Iterable[float] = _AT_ONCE,
) -> Stored[_RecordT] | None:
    """Take what stands one ``step`` further; returns what stands then, ``None`` where the step refused.

    ``step`` is asked again for whatever stands after a lost race, so it must be pure. What it returns unchanged is not
    written. Each of ``pauses_s`` is waited before another attempt; ``likely_absent`` saves the first read. Raises what
    ``step`` raises, and ``Unavailable``.
    """
    standing = None if likely_absent else await read_stored(store, kind, key)
    for pause_s in (*pauses_s, None):
        wanted = step(None if standing is None else standing.record)
        if wanted is None:
            return None
        if standing is not None and wanted == standing.record:
            return standing
        written = await _written(store, key, wanted, standing)
        if written is not None:
            return Stored(key, wanted, written.revision, written.written_at)
        if pause_s is None:
            break
        if pause_s > 0:
            await asyncio.sleep(pause_s)
        standing = await read_stored(store, kind, key)
    raise Unavailable(f"{store.name}: {key} changed under every attempt to change it")


async def first_stored(store: RecordStore, key: str, record: _RecordT) -> Stored[_RecordT]:
    """``record`` stands where none did; returns what stands then, ours or an earlier one. Raises ``Unavailable``."""
    first = await change_stored(store, type(record), key, lambda before: before or record, likely_absent=True)
    assert first is not None
    return first


async def put_stored(store: RecordStore, key: str, record: _RecordT) -> Stored[_RecordT]:
    """``record`` stands, whatever stood before; what another build wrote beside our fields stays (D10)."""
    put = await change_stored(
        store, type(record), key, lambda before: record if before is None else replace(record, unknown=before.unknown)
    )
    assert put is not None
    return put


async def remove_stored(
    store: RecordStore, kind: type[_RecordT], key: str, may: Callable[[_RecordT], bool]
) -> _RecordT | None:
    """The record is gone, if it is one that ``may`` go; returns what was removed, ``None`` where nothing was.

    Of two removals at once both may be told that it was theirs: taking away what is gone is no error.
    ``may`` is asked again for whatever stands after a lost race. Raises what ``may`` raises, and ``Unavailable``.
    """
    for _ in range(limits.RECORD_CHANGE_ATTEMPTS_MAX):
        standing = await read_stored(store, kind, key)
        if standing is None or not may(standing.record):
            return None
        try:
            await store.delete(key, expected=standing.revision)
        except Conflict:
            continue
        return standing.record
    raise Unavailable(f"{store.name}: {key} changed under every attempt to remove it")


async def _written(store: RecordStore, key: str, record: SharedRecord, over: Stored[_RecordT] | None) -> Record | None:
    try:
        if over is None:
            return await store.create(key, encode_record(record))
        return await store.update(key, encode_record(record), expected=over.revision)
    except Conflict:
        return None
