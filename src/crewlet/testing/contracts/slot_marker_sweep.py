"""Promises about the sweep of removal markers: old ones go, young ones stay, and no live record goes with them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar

import pytest

from crewlet.base import limits
from crewlet.coordination import MarkerSweep, RecordStore, sweep_markers, swept_slots
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness

__all__ = ["MarkerSweepPromises", "Sweeper"]

RETENTION = timedelta(seconds=limits.MARKER_RETENTION_S)


async def buckets(records: RecordHarness) -> dict[str, RecordStore]:
    """A client of every bucket that is swept."""
    return {slot.name: await records.client(slot) for slot in swept_slots()}


async def removed(store: RecordStore, key: str = "class.a") -> None:
    """The bucket has the marker of one record."""
    record = await store.create(key, b"1")
    await store.delete(key, expected=record.revision)


class Sweeper:
    """What sweeps."""

    async def sweep(self, stores: Mapping[str, RecordStore], now: datetime) -> MarkerSweep:
        """One sweep."""
        return await sweep_markers(stores, now)


class MarkerSweepPromises(Contract):
    """What is true after a sweep."""

    kind: ClassVar[type[Sweeper]] = Sweeper

    @pytest.mark.spec("C-148", "C-151")
    async def test_the_old_markers_of_every_bucket_without_an_age_are_gone(self, records: RecordHarness) -> None:
        stores = await buckets(records)
        for store in stores.values():
            await removed(store)
        await records.disturb()

        swept = await self.kind().sweep(stores, records.now() + RETENTION + timedelta(minutes=1))

        assert swept == MarkerSweep(dict.fromkeys(stores, 1))
        assert [await store.last_revision() for store in stores.values()] == [0] * len(stores)

    @pytest.mark.spec("C-151")
    async def test_a_marker_younger_than_three_hours_stays(self, records: RecordHarness) -> None:
        stores = await buckets(records)
        for store in stores.values():
            await removed(store)

        swept = await self.kind().sweep(stores, records.now() + RETENTION - timedelta(minutes=1))

        assert swept == MarkerSweep(dict.fromkeys(stores, 0))
        assert 0 not in [await store.last_revision() for store in stores.values()]

    async def test_records_are_untouched(self, records: RecordHarness) -> None:
        stores = await buckets(records)
        written = [await store.create("class.live", b"1") for store in stores.values()]

        await self.kind().sweep(stores, records.now() + 2 * RETENTION)

        assert [await store.get("class.live") for store in stores.values()] == written

    async def test_a_record_that_was_created_again_is_untouched(self, records: RecordHarness) -> None:
        stores = await buckets(records)
        for store in stores.values():
            await removed(store)
        again = [await store.create("class.a", b"2") for store in stores.values()]

        await self.kind().sweep(stores, records.now() + 2 * RETENTION)

        assert [await store.get("class.a") for store in stores.values()] == again
        assert [await store.list("class.>") for store in stores.values()] == [[record] for record in again]

    @pytest.mark.spec("C-152")
    async def test_a_bucket_that_does_not_answer_stops_no_other_and_is_swept_the_next_time(
        self, records: RecordHarness
    ) -> None:
        stores = await buckets(records)
        for store in stores.values():
            await removed(store)
        now = records.now() + RETENTION + timedelta(minutes=1)
        await records.cut(stores["secrets"])

        first = await self.kind().sweep(stores, now)
        await records.mend(stores["secrets"])
        second = await self.kind().sweep(stores, now)

        others = [name for name in stores if name != "secrets"]
        assert first == MarkerSweep(dict.fromkeys(others, 1), ("secrets",))
        assert second == MarkerSweep({**dict.fromkeys(stores, 0), "secrets": 1})
