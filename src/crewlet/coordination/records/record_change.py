"""Changing one record: read it, decide what it should become, write that over what was read; again where that lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import Final, TypeVar

from crewlet.base import limits
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.records.codec import SharedRecord, decode_record, encode_record

__all__ = ["change_record", "first_record", "jittered_pauses"]

_RecordT = TypeVar("_RecordT", bound=SharedRecord)

_AT_ONCE: Final = (0.0,) * (limits.RECORD_CHANGE_ATTEMPTS_MAX - 1)


async def change_record(
    store: RecordStore,
    key: str,
    kind: type[_RecordT],
    step: Callable[[_RecordT | None], _RecordT | None],
    *,
    likely_absent: bool = False,
    pauses_s: Iterable[float] = _AT_ONCE,
) -> _RecordT | None:
    """Write what ``step`` makes of the record under ``key``; returns what stands then.

    ``step`` is pure: it may be asked again, each time with what stands. ``None``, or what it was given, leaves that.
    Each of ``pauses_s`` is waited before another attempt. ``likely_absent`` saves the first read.

    Raises ``Unavailable``: also where every attempt was overtaken, or what stands cannot be read.
    """
    found = None if likely_absent else await store.get(key)
    for pause_s in (*pauses_s, None):
        standing = None if found is None else decode_record(kind, found.value)
        wanted = step(standing)
        if wanted is None or wanted == standing:
            return standing
        try:
            if found is None:
                await store.create(key, encode_record(wanted))
            else:
                await store.update(key, encode_record(wanted), expected=found.revision)
        except Conflict:
            if pause_s:
                await asyncio.sleep(pause_s)
            found = await store.get(key)
        else:
            return wanted
    raise Unavailable(f"{store.name}: {key!r} changed under every attempt to change it")


async def first_record(store: RecordStore, key: str, record: _RecordT) -> _RecordT:
    """Write ``record`` where none stands; returns what stands then, ours or an earlier one. Raises ``Unavailable``."""
    stands = await change_record(store, key, type(record), lambda standing: standing or record, likely_absent=True)
    assert stands is not None, "the step above always wants a record"
    return stands


def jittered_pauses(chance: Random, *, first_s: float, longest_s: float, attempts: int) -> Iterable[float]:
    """The pauses between so many attempts: each up to twice the one before, and never more than ``longest_s``."""
    return (chance.uniform(0.5, 1.0) * min(longest_s, first_s * 2**attempt) for attempt in range(attempts - 1))
