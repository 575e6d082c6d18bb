"""The record store's twin keeps every promise of the store, and can be cut off."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base.errors import Unavailable
from crewlet.coordination import Revision, Slot
from crewlet.testing import VirtualClock
from tests.broker.record_store_promises import RecordStorePromises

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def bucket() -> MemoryBucket:
    return MemoryBucket(Slot("tested", 60.0, "a slot of the tests"), VirtualClock())


@pytest.fixture
async def store(bucket: MemoryBucket) -> MemoryRecordStore:
    return MemoryRecordStore(bucket)


class TestMemoryRecordStore(RecordStorePromises):
    """Every promise, on the twin."""


async def test_clients_of_one_bucket_see_each_others_writes(bucket: MemoryBucket, store: MemoryRecordStore) -> None:
    written = await store.create("a", b"1")

    assert await MemoryRecordStore(bucket).get("a") == written


async def test_a_record_is_absent_once_its_age_has_passed(store: MemoryRecordStore) -> None:
    await store.create("a", b"1")

    await _pass(59.0)
    young = await store.get("a")
    await _pass(1.0)

    assert young is not None
    assert await store.get("a") is None


async def test_an_update_starts_the_age_again(store: MemoryRecordStore) -> None:
    first = await store.create("a", b"1")
    await _pass(59.0)
    await store.update("a", b"2", expected=first.revision)

    await _pass(59.0)

    assert await store.get("a") is not None


async def test_a_write_is_dated_by_the_bucket(store: MemoryRecordStore) -> None:
    first = await store.create("a", b"1")
    await _pass(10.0)

    second = await store.update("a", b"2", expected=first.revision)

    assert second.written_at - first.written_at == timedelta(seconds=10)


@pytest.mark.spec("C-003")
async def test_every_verb_of_a_bucket_that_is_cut_is_unavailable(
    bucket: MemoryBucket, store: MemoryRecordStore
) -> None:
    first = await store.create("a", b"1")
    bucket.cut = True

    for call in (
        store.get("a"),
        store.create("b", b"1"),
        store.update("a", b"2", expected=first.revision),
        store.delete("a", expected=Revision(1)),
    ):
        with pytest.raises(Unavailable):
            await call
    bucket.cut = False

    assert await store.get("a") == first
    assert await store.get("b") is None


async def _pass(seconds: float) -> None:
    await asyncio.sleep(seconds)
