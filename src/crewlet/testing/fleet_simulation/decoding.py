"""Each value that the store holds is read once for all nodes: a hundred of them would read it a hundred times.

A value is bytes and what is made of it is frozen, so that no node sees anything but what it would have made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any

from crewlet.coordination import Lease, Record, kv_leases, lease_record
from crewlet.coordination.lease_record import StoredLease
from crewlet.coordination.records import epochs

__all__ = ["decoded_once"]

_VALUES_MAX = 65_536


@contextmanager
def decoded_once() -> Generator[None]:
    """While this lasts, nodes share what they make of leases and epochs."""
    decoded = lru_cache(maxsize=_VALUES_MAX)
    with ExitStack() as undone:
        for owner, name, remembering in (
            (lease_record, "decode_record", decoded),
            (epochs, "decode_record", decoded),
            (epochs, "_hint", decoded),
            (kv_leases, "stored_lease", _once_a_record),
            (StoredLease, "as_lease", _once_a_reading),
        ):
            before: Any = vars(owner)[name]
            undone.callback(setattr, owner, name, before)
            setattr(owner, name, remembering(before))
        yield


def _once_a_record(read: Callable[[Record], StoredLease]) -> Callable[[Record], StoredLease]:
    """Of each key the last record, as it was read."""
    last: dict[str, StoredLease] = {}

    def reading(record: Record) -> StoredLease:
        known = last.get(record.key)
        if known is None or known.record is not record:
            known = last[record.key] = read(record)
        return known

    return reading


def _once_a_reading(said: Callable[[StoredLease], Lease]) -> Callable[[StoredLease], Lease]:
    """Of each key what the last reading told."""
    last: dict[str, tuple[StoredLease, Lease]] = {}

    def told(stored: StoredLease) -> Lease:
        known, lease = last.get(stored.record.key, (None, None))
        if known is not stored or lease is None:
            lease = said(stored)
            last[stored.record.key] = stored, lease
        return lease

    return told
