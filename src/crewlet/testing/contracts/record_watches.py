"""Promises about watches: a listing, and then whatever happens to what it holds."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import Change, Record, RecordStore, Watch
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_churn import BREATH_S, meanwhile, passing_through, recreating, rewriting
from crewlet.testing.contracts.record_harness import AGED, RecordHarness
from crewlet.testing.contracts.record_listings import NO_PATTERNS
from crewlet.testing.waiting import wait_until

__all__ = ["WatchAnswers", "WatchEnds", "Watches"]

_SEATS = [f"seat.s{number}" for number in range(5)]
_OPENINGS = 15
_SOON_S = 10.0


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
            assert _by_key(watch.answer) == {"seat.ada": ada, "seat.bob": bob}
            assert len(watch.answer) == 2

    async def test_a_watch_takes_several_patterns(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        for key in ("seat.ada", "node.n1", "worker.w1"):
            await here.create(key, b"1")

        async with there.watch("seat.>", "node.*") as watch:
            await here.create("worker.w2", b"1")
            await here.create("node.n2.x", b"1")
            written = await here.create("node.n2", b"1")

            assert {*_by_key(watch.answer)} == {"seat.ada", "node.n1"}
            assert await _next(watch) == Change("node.n2", written, written.revision)

    async def test_of_nothing_the_answer_is_empty_and_its_position_zero(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()

        async with there.watch("seat.>") as watch:
            assert (watch.answer, watch.position) == ((), 0)
            written = await here.create("seat.ada", b"1")
            assert await _next(watch) == Change("seat.ada", written, written.revision)

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


class Watches(Contract):
    """What a watch hands over after its answer."""

    async def test_changes_come_in_the_order_in_which_they_were_written(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        await here.create("seat.s0", b"1")

        async with there.watch("seat.>") as watch:
            written = [await here.create(f"seat.t{number}", b"%d" % number) for number in range(30)]

            changes = [await _next(watch) for _ in written]

        assert changes == [Change(record.key, record, record.revision) for record in written]

    async def test_a_removal_is_a_change_to_nothing(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("seat.ada", b"1")

        async with there.watch("seat.>") as watch:
            await here.delete("seat.ada", expected=first.revision)
            removed = await _next(watch)
            again = await here.create("seat.ada", b"2")
            revived = await _next(watch)

        assert (removed.key, removed.record) == ("seat.ada", None)
        assert first.revision < removed.revision < again.revision
        assert revived == Change("seat.ada", again, again.revision)

    async def test_what_other_classes_do_is_not_told(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()

        async with there.watch("seat.>") as watch:
            await here.create("node.n1", b"1")
            await here.create("seat", b"1")
            written = await here.create("seat.ada", b"1")

            assert await _next(watch) == Change("seat.ada", written, written.revision)

    @pytest.mark.spec("C-038")
    async def test_what_the_answer_holds_is_not_told_again(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("seat.ada", b"1")
        await here.update("seat.ada", b"2", expected=first.revision)

        async with there.watch("seat.>") as watch:
            await records.quiet()
            written = await here.create("seat.bob", b"1")

            assert await _next(watch) == Change("seat.bob", written, written.revision)

    @pytest.mark.spec("C-037", "C-038")
    async def test_nothing_falls_between_the_answer_and_the_changes_and_nothing_comes_twice(
        self, records: RecordHarness
    ) -> None:
        watcher, writers = await records.client(), [await records.client() for _ in range(3)]
        for key in _SEATS:
            await watcher.create(key, b"1")
        works = [
            rewriting(writers[0], _SEATS[0]),
            recreating(writers[1], "seat.t"),
            passing_through(writers[2], "seat.p"),
        ]

        for _ in range(_OPENINGS):
            async with AsyncExitStack() as opened:
                async with meanwhile(*works):
                    await records.advance(BREATH_S)
                    watch = await opened.enter_async_context(watcher.watch("seat.>"))
                    view = _by_key(watch.answer)
                    await _followed(watch, view, changes=5)
                await _caught_up(watch, view, await watcher.last_revision())
                assert view == _by_key(await watcher.list("seat.>"))

    async def test_a_watch_of_every_class_gets_to_the_buckets_last_revision(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("seat.ada", b"1")

        async with there.watch("seat.>", "node.>") as watch:
            opened = watch.position
            await here.create("node.n1", b"1")
            await here.delete("seat.ada", expected=first.revision)
            last = await there.last_revision()
            await wait_until(lambda: watch.position == last, what="the watch at the newest write, unread")

        async with there.watch("seat.>", "node.>") as again:
            await wait_until(lambda: again.position == last, what="another watch at the newest write")
        assert opened == first.revision

    async def test_watches_of_one_client_do_not_touch_each_other(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()

        async with there.watch("seat.>") as one:
            async with there.watch("seat.>", "node.>") as other:
                node = await here.create("node.n1", b"1")
                assert (await _next(other)).record == node
            written = await here.create("seat.ada", b"1")

            assert (await _next(one)).record == written

    async def test_what_grows_too_old_makes_no_change(self, records: RecordHarness) -> None:
        here, there = await records.client(AGED), await records.client(AGED)
        await here.create("seat.ada", b"1")

        async with there.watch("seat.>") as watch:
            await wait_until(lambda: _is_gone(here, "seat.ada"), what="the end of the record's age")
            again = await here.create("seat.ada", b"2")

            assert await _next(watch) == Change("seat.ada", again, again.revision)

    @pytest.mark.spec("C-037")
    async def test_after_a_change_of_leader_a_watch_goes_on_or_is_over(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        await here.create("seat.s", b"1")

        for number in range(2):
            async with there.watch("seat.>") as watch:
                before = await here.create(f"seat.before{number}", b"1")
                assert (await _next(watch)).record == before
                await records.disturb()
                after = await here.create(f"seat.after{number}", b"1")
                try:
                    assert (await _next(watch)).record == after
                except Unavailable:
                    async with there.watch("seat.>") as again:
                        assert _by_key(again.answer)[after.key] == after


class WatchEnds(Contract):
    """How a watch is over."""

    @pytest.mark.spec("C-003")
    async def test_a_watch_that_is_cut_off_is_over_and_says_so(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("seat.ada", b"1")

        async with there.watch("seat.>") as watch:
            await records.cut(there)
            with pytest.raises(Unavailable):
                await _next(watch)
            await here.update("seat.ada", b"2", expected=first.revision)
            await records.mend(there)

            with pytest.raises(Unavailable):
                await _next(watch)
            assert watch.answer == (first,)

    async def test_who_waits_for_a_change_hears_of_the_cut(self, records: RecordHarness) -> None:
        store = await records.client()

        async with store.watch("seat.>") as watch:
            heard, _ = await asyncio.gather(_next(watch), _cut_soon(records, store), return_exceptions=True)

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
            await _next(watch)


async def _next(watch: Watch) -> Change:
    async with asyncio.timeout(_SOON_S):
        return await watch.next()


async def _followed(watch: Watch, view: dict[str, Record], *, changes: int) -> int:
    """Take some changes into the view, none of which may be older than what is known; returns the last's revision."""
    revision = 0
    for _ in range(changes):
        change = await _next(watch)
        known = view.pop(change.key, None)
        assert known is None or change.revision > known.revision, f"{change} after {known}"
        assert change.revision > revision, f"{change} after revision {revision}"
        revision = change.revision
        if change.record is not None:
            assert (change.record.key, change.record.revision) == (change.key, change.revision)
            view[change.key] = change.record
    return revision


async def _caught_up(watch: Watch, view: dict[str, Record], last: int) -> None:
    """Take changes into the view up to the write ``last``, which is no removal."""
    seen = max((record.revision for record in view.values()), default=0)
    while seen < last:
        seen = await _followed(watch, view, changes=1)


async def _cut_soon(records: RecordHarness, store: RecordStore) -> None:
    await records.quiet()
    await records.cut(store)


async def _is_gone(store: RecordStore, key: str) -> bool:
    return await store.get(key) is None


def _by_key(found: tuple[Record, ...] | list[Record]) -> dict[str, Record]:
    return {record.key: record for record in found}
