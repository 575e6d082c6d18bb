"""Promises about how a watch is over."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import RecordStore
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.record_watching import next_change

__all__ = ["WatchEnds"]


class WatchEnds(Contract):
    """How a watch is over."""

    @pytest.mark.spec("C-003")
    async def test_a_watch_that_is_cut_off_is_over_and_says_so(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("seat.ada", b"1")

        async with there.watch("seat.>") as watch:
            await records.cut(there)
            with pytest.raises(Unavailable):
                await next_change(watch)
            await here.update("seat.ada", b"2", expected=first.revision)
            await records.mend(there)

            with pytest.raises(Unavailable):
                await next_change(watch)
            assert watch.answer == (first,)

    async def test_who_waits_for_a_change_hears_of_the_cut(self, records: RecordHarness) -> None:
        store = await records.client()

        async with store.watch("seat.>") as watch:
            heard, _ = await asyncio.gather(next_change(watch), _cut_soon(records, store), return_exceptions=True)

        assert isinstance(heard, Unavailable)

    @pytest.mark.spec("C-003", "C-041")
    async def test_a_watch_cannot_be_opened_by_who_is_cut_off(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        await here.create("seat.ada", b"1")
        await records.cut(there)

        with pytest.raises(Unavailable):
            async with there.watch("seat.>"):
                pytest.fail("a watch without an answer")

    async def test_what_happened_while_a_watch_was_over_is_in_the_next_ones_answer(
        self, records: RecordHarness
    ) -> None:
        here, there = await records.client(), await records.client()
        first, other = await here.create("seat.ada", b"1"), await here.create("seat.bob", b"1")
        async with there.watch("seat.>"):
            await records.cut(there)
        second = await here.update("seat.ada", b"2", expected=first.revision)
        await here.delete("seat.bob", expected=other.revision)
        await records.mend(there)

        async with there.watch("seat.>") as again:
            assert again.answer == (second,)

    async def test_a_watch_that_was_left_hands_nothing_over(self, records: RecordHarness) -> None:
        store = await records.client()
        async with store.watch("seat.>") as watch:
            pass
        await store.create("seat.ada", b"1")

        with pytest.raises(Unavailable):
            await next_change(watch)


async def _cut_soon(records: RecordHarness, store: RecordStore) -> None:
    await records.quiet()
    await records.cut(store)
