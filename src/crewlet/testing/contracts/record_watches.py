"""Promises about what a watch hands over after its answer."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import Change, RecordStore
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_churn import BREATH_S, meanwhile, passing_through, recreating, rewriting
from crewlet.testing.contracts.record_harness import AGED, RecordHarness
from crewlet.testing.contracts.record_watching import by_key, caught_up, followed, next_change
from crewlet.testing.waiting import wait_until

__all__ = ["Watches"]

_SEATS = [f"seat.s{number}" for number in range(5)]
_OPENINGS = 15


class Watches(Contract):
    """What a watch hands over after its answer."""

    async def test_changes_come_in_the_order_in_which_they_were_written(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        await here.create("seat.s0", b"1")

        async with there.watch("seat.>") as watch:
            written = [await here.create(f"seat.t{number}", b"%d" % number) for number in range(30)]

            changes = [await next_change(watch) for _ in written]

        assert changes == [Change(record.key, record, record.revision) for record in written]

    async def test_a_removal_is_a_change_to_nothing(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("seat.ada", b"1")

        async with there.watch("seat.>") as watch:
            await here.delete("seat.ada", expected=first.revision)
            removed = await next_change(watch)
            again = await here.create("seat.ada", b"2")
            revived = await next_change(watch)

        assert (removed.key, removed.record) == ("seat.ada", None)
        assert first.revision < removed.revision < again.revision
        assert revived == Change("seat.ada", again, again.revision)

    async def test_what_other_classes_do_is_not_told(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()

        async with there.watch("seat.>") as watch:
            await here.create("node.n1", b"1")
            await here.create("seat", b"1")
            written = await here.create("seat.ada", b"1")

            assert await next_change(watch) == Change("seat.ada", written, written.revision)

    @pytest.mark.spec("C-038")
    async def test_what_the_answer_holds_is_not_told_again(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("seat.ada", b"1")
        await here.update("seat.ada", b"2", expected=first.revision)

        async with there.watch("seat.>") as watch:
            await records.quiet()
            written = await here.create("seat.bob", b"1")

            assert await next_change(watch) == Change("seat.bob", written, written.revision)

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
                    view = by_key(watch.answer)
                    await followed(watch, view, changes=5)
                await caught_up(watch, view, await watcher.last_revision())
                assert view == by_key(await watcher.list("seat.>"))

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
                assert (await next_change(other)).record == node
            written = await here.create("seat.ada", b"1")

            assert (await next_change(one)).record == written

    async def test_what_grows_too_old_makes_no_change(self, records: RecordHarness) -> None:
        here, there = await records.client(AGED), await records.client(AGED)
        await here.create("seat.ada", b"1")

        async with there.watch("seat.>") as watch:
            await wait_until(lambda: _is_gone(here, "seat.ada"), what="the end of the record's age")
            again = await here.create("seat.ada", b"2")

            assert await next_change(watch) == Change("seat.ada", again, again.revision)

    @pytest.mark.spec("C-037")
    async def test_after_a_change_of_leader_a_watch_goes_on_or_is_over(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        await here.create("seat.s", b"1")

        for number in range(2):
            async with there.watch("seat.>") as watch:
                before = await here.create(f"seat.before{number}", b"1")
                assert (await next_change(watch)).record == before
                await records.disturb()
                after = await here.create(f"seat.after{number}", b"1")
                try:
                    assert (await next_change(watch)).record == after
                except Unavailable:
                    async with there.watch("seat.>") as again:
                        assert by_key(again.answer)[after.key] == after


async def _is_gone(store: RecordStore, key: str) -> bool:
    return await store.get(key) is None
