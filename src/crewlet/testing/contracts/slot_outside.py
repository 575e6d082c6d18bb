"""What the slots' suites do behind a slot's back: cut it off, and write as a newer build would."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import RecordStore
from crewlet.testing.contracts.record_harness import RecordHarness

__all__ = ["AT", "add_fields", "damage", "fields", "has_no_answer"]

AT: Final = datetime(2030, 1, 1, tzinfo=UTC)


async def has_no_answer(records: RecordHarness, client: RecordStore, *calls: Callable[[], Awaitable[object]]) -> None:
    """Each call raises ``Unavailable`` while the client is cut off; it is mended afterwards."""
    await records.cut(client)
    for call in calls:
        with pytest.raises(Unavailable):
            await call()
    await records.mend(client)


async def add_fields(store: RecordStore, key: str, **added: object) -> None:
    """A newer build rewrites the record with fields that this build does not know."""
    record = await store.get(key)
    assert record is not None
    value = msgspec.json.encode({**msgspec.json.decode(record.value), **added})
    await store.update(key, value, expected=record.revision)


async def fields(store: RecordStore, key: str) -> dict[str, Any]:
    """The record's fields as they are stored."""
    record = await store.get(key)
    assert record is not None
    return msgspec.json.decode(record.value, type=dict[str, Any])


async def damage(store: RecordStore, key: str) -> None:
    """The record becomes something that no build can read."""
    record = await store.get(key)
    assert record is not None
    await store.update(key, b'{"spoiled":true}', expected=record.revision)
