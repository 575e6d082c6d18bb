"""Promises about what a watch begins with."""

from __future__ import annotations

import pytest

from crewlet.coordination import Change
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_churn import BREATH_S, meanwhile, rewriting
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.record_listings import NO_PATTERNS
from crewlet.testing.contracts.record_watching import by_key, next_change

__all__ = ["WatchAnswers"]

_SEATS = [f"seat.s{number}" for number in range(5)]
_OPENINGS = 15


class WatchAnswers(Contract):
    """What a watch begins with."""

    @pytest.mark.spec("C-034")
    async def test_a_watch_begins_with_a_listing_of_its_class(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        ada, bob = await here.create("seat.ada", b"1"), await here.create("seat.bob", b"1")
        gone, _ = await here.create("seat.eve", b"1"), await here.create("node.n1", b"1")
        await here.delete("seat.eve", expected=gone.revision)
        bob = await here.update("seat.bob", b"2", expected=bob.revision)

        async with there.watch("seat.>") as watch:
            assert by_key(watch.answer) == {"seat.ada": ada, "seat.bob": bob}
            assert len(watch.answer) == 2

    async def test_a_watch_takes_several_patterns(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        for key in ("seat.ada", "node.n1", "worker.w1"):
            await here.create(key, b"1")

        async with there.watch("seat.>", "node.*") as watch:
            await here.create("worker.w2", b"1")
            await here.create("node.n2.x", b"1")
            written = await here.create("node.n2", b"1")

            assert {*by_key(watch.answer)} == {"seat.ada", "node.n1"}
            assert await next_change(watch) == Change("node.n2", written, written.revision)

    async def test_of_nothing_the_answer_is_empty_and_its_position_zero(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()

        async with there.watch("seat.>") as watch:
            assert (watch.answer, watch.position) == ((), 0)
            written = await here.create("seat.ada", b"1")
            assert await next_change(watch) == Change("seat.ada", written, written.revision)

    async def test_a_class_whose_records_were_all_removed_has_an_empty_answer(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("seat.ada", b"1")
        await here.delete("seat.ada", expected=first.revision)

        async with there.watch("seat.>") as watch:
            assert watch.answer == ()

    @pytest.mark.spec("C-034", "C-012")
    async def test_a_record_that_is_rewritten_all_the_time_is_in_every_answer(self, records: RecordHarness) -> None:
        watcher, writers = await records.client(), [await records.client() for _ in range(3)]
        for key in _SEATS:
            await watcher.create(key, b"1")

        async with meanwhile(*map(rewriting, writers, _SEATS)):
            for _ in range(_OPENINGS):
                async with watcher.watch("seat.>") as watch:
                    assert sorted(record.key for record in watch.answer) == _SEATS
                await records.advance(BREATH_S)

    @pytest.mark.spec("C-058")
    async def test_a_watch_of_what_names_no_class_is_refused(self, records: RecordHarness) -> None:
        store = await records.client()

        for pattern in NO_PATTERNS:
            with pytest.raises(ValueError, match="cannot be listed"):
                async with store.watch("seat.>", pattern):
                    pass
