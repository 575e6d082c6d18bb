"""Promises about time: how long a record lives, and what the store's clock says, whatever ours does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from crewlet.base.errors import Conflict
from crewlet.coordination import RecordStore
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import AGED, RecordHarness
from crewlet.testing.waiting import wait_until

__all__ = ["Ages", "StoreTimes"]

_AGE_S = 2.0
_YOUNG_S = 0.6 * _AGE_S
_A_MOMENT = timedelta(seconds=2)
"""How far a clock is read beside the thing that it dates; the two clocks are much further apart."""


class Ages(Contract):
    """How long a record lives."""

    async def test_a_record_is_absent_once_its_age_has_passed_and_its_key_is_free(self, records: RecordHarness) -> None:
        here, there = await records.client(AGED), await records.client(AGED)
        first = await here.create("a", b"1")
        young = await there.get("a")

        await wait_until(lambda: _is_gone(there, "a"), what="the end of the record's age")

        assert young == first
        assert records.now() - first.written_at >= timedelta(seconds=_AGE_S)
        again = await there.create("a", b"2")
        assert await here.get("a") == again

    async def test_an_update_starts_the_age_again(self, records: RecordHarness) -> None:
        store = await records.client(AGED)
        first = await store.create("a", b"1")
        await records.advance(_YOUNG_S)
        second = await store.update("a", b"2", expected=first.revision)

        await records.advance(_YOUNG_S)

        assert await store.get("a") == second
        assert await store.list("a") == [second]

    async def test_a_read_does_not_start_the_age_again(self, records: RecordHarness) -> None:
        store = await records.client(AGED)
        await store.create("a", b"1")
        await records.advance(_YOUNG_S)
        await store.get("a")
        await store.list("a")

        await records.advance(_YOUNG_S)

        assert await store.get("a") is None

    async def test_each_record_has_an_age_of_its_own(self, records: RecordHarness) -> None:
        store = await records.client(AGED)
        await store.create("a", b"1")
        await records.advance(_YOUNG_S)
        other = await store.create("b", b"1")

        await wait_until(lambda: _is_gone(store, "a"), what="the end of the elder's age")

        assert await store.get("b") == other

    async def test_what_grew_too_old_is_not_updated(self, records: RecordHarness) -> None:
        store = await records.client(AGED)
        first = await store.create("a", b"1")
        await wait_until(lambda: _is_gone(store, "a"), what="the end of the record's age")

        with pytest.raises(Conflict) as caught:
            await store.update("a", b"2", expected=first.revision)
        await store.delete("a", expected=first.revision)

        assert caught.value.current == 0
        assert await store.get("a") is None

    async def test_what_has_no_age_stays(self, records: RecordHarness) -> None:
        store = await records.client()
        first = await store.create("a", b"1")

        await records.advance(_YOUNG_S)

        assert (store.age_s, await store.get("a")) == (None, first)

    @pytest.mark.spec("C-114")
    async def test_the_age_in_force_is_the_first_clients_whoever_asks(self, records: RecordHarness) -> None:
        first = await records.client(AGED)
        second = await records.client(replace(AGED, age_s=3600.0))

        assert (first.age_s, second.age_s) == (_AGE_S, _AGE_S)


class StoreTimes(Contract):
    """What the store's clock says."""

    async def test_a_write_is_dated_by_the_stores_clock_and_not_by_ours(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()

        written = await here.create("a", b"1")

        assert abs(records.now() - written.written_at) < _A_MOMENT
        assert await there.get("a") == written

    async def test_an_update_has_a_date_of_its_own(self, records: RecordHarness) -> None:
        store = await records.client()
        first = await store.create("a", b"1")
        await records.advance(0.5)

        second = await store.update("a", b"2", expected=first.revision)

        assert second.written_at - first.written_at >= timedelta(seconds=0.4)

    async def test_the_bounds_hold_the_stores_time_and_are_narrow(self, records: RecordHarness) -> None:
        store = await records.client()
        for _ in range(5):
            before = records.now()

            told = await store.time()

            assert told.earliest <= records.now()
            assert told.latest >= before
            assert timedelta() < told.latest - told.earliest < _A_MOMENT
            await records.advance(0.1)

    async def test_a_write_between_two_looks_at_the_clock_is_dated_between_them(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        for number in range(5):
            before = await there.time()
            written = await here.create(f"a.{number}", b"1")
            after = await there.time()

            assert before.earliest <= written.written_at <= after.latest
            await records.advance(0.1)

    async def test_a_deadline_is_judged_past_by_the_stores_clock_alone(self, records: RecordHarness) -> None:
        store = await records.client()
        written = await store.create("a", b"1")
        deadline = written.written_at + timedelta(seconds=0.5)

        early = await store.time()
        await records.advance(1.0)
        late = await store.time()

        assert not early.is_surely_past(deadline)
        assert late.is_surely_past(deadline)
        assert not late.is_maybe_past(written.written_at + timedelta(seconds=60))


async def _is_gone(store: RecordStore, key: str) -> bool:
    return await store.get(key) is None
