"""Promises about single records: what a read answers, and which of several writes is done."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base.errors import Conflict
from crewlet.coordination import RecordStore, Revision
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness

__all__ = ["NO_KEYS", "RecordWrites", "Revisions"]

NO_KEYS = ("", "a b", "a*", "*", ">", "a.>", ".a", "a.", "a..b", "ä", "a\nb", "a.b\n", "seat:", "seat:ada")
"""What can be no record's key."""


class RecordWrites(Contract):
    """What is true after a create, an update and a read."""

    async def test_a_record_is_read_by_another_client_as_it_was_written(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()

        written = await here.create("a.b", b"\x00\xff")

        assert await there.get("a.b") == written
        assert (written.key, written.value) == ("a.b", b"\x00\xff")
        assert written.written_at.tzinfo is not None

    async def test_a_key_never_written_is_absent(self, records: RecordHarness) -> None:
        store = await records.client()

        assert await store.get("nothing") is None

    async def test_any_bytes_are_a_value_none_at_all_too(self, records: RecordHarness) -> None:
        store = await records.client()
        written = await store.create("a", b"")
        assert await store.get("a") == written

        for value in (b"\x00", b"x" * 500_000, b""):
            written = await store.update("a", value, expected=written.revision)

            assert written.value == value
            assert await store.get("a") == written
            assert await store.list("a") == [written]

    async def test_a_create_is_exclusive_and_names_what_stands(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("a", b"1")

        with pytest.raises(Conflict) as caught:
            await there.create("a", b"2")

        assert (caught.value.key, caught.value.current) == ("a", first.revision)
        assert await there.get("a") == first

    async def test_of_many_creates_one_wins_even_with_equal_bytes(self, records: RecordHarness) -> None:
        clients = [await records.client() for _ in range(3)]

        outcomes = await asyncio.gather(
            *(client.create("a", b"same") for client in clients * 4), return_exceptions=True
        )

        won = [outcome for outcome in outcomes if not isinstance(outcome, Conflict)]
        assert won == [await clients[0].get("a")]

    async def test_an_update_replaces_what_it_expects_alone(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("a", b"1")
        second = await here.update("a", b"2", expected=first.revision)

        with pytest.raises(Conflict) as caught:
            await there.update("a", b"3", expected=first.revision)

        assert (caught.value.expected, caught.value.current) == (first.revision, second.revision)
        assert await there.get("a") == second

    async def test_of_many_updates_one_wins_even_with_equal_bytes(self, records: RecordHarness) -> None:
        clients = [await records.client() for _ in range(3)]
        first = await clients[0].create("a", b"0")
        updates = (client.update("a", b"same", expected=first.revision) for client in clients * 4)

        outcomes = await asyncio.gather(*updates, return_exceptions=True)

        won = [outcome for outcome in outcomes if not isinstance(outcome, Conflict)]
        assert won == [await clients[0].get("a")]

    async def test_an_update_of_an_absent_key_conflicts(self, records: RecordHarness) -> None:
        store = await records.client()

        with pytest.raises(Conflict) as caught:
            await store.update("a", b"1", expected=Revision(7))

        assert caught.value.current == 0
        assert await store.get("a") is None

    async def test_keys_do_not_touch_each_other(self, records: RecordHarness) -> None:
        store = await records.client()
        first, other = await store.create("a.b", b"1"), await store.create("a.c", b"2")

        await store.update("a.b", b"3", expected=first.revision)

        assert await store.get("a.c") == other
        assert await store.get("a") is None

    async def test_no_write_of_many_clients_over_one_record_is_lost_or_unknown(self, records: RecordHarness) -> None:
        clients = [await records.client() for _ in range(4)]
        await clients[0].create("a", b"0")

        await asyncio.gather(*(_count_up(client, times=15) for client in clients))

        total = await clients[0].get("a")
        assert total is not None
        assert total.value == b"60"

    async def test_a_key_may_hold_whatever_the_alphabet_of_keys_has(self, records: RecordHarness) -> None:
        store = await records.client()

        for key in ("a-b/c_d=.E9", "-", "a.=0f.b", "x" * 200, "A", "a"):
            written = await store.create(key, b"1")

            assert await store.get(key) == written
            assert await store.list(key) == [written]

    @pytest.mark.spec("C-059")
    async def test_what_can_be_no_key_is_refused_by_every_verb(self, records: RecordHarness) -> None:
        store = await records.client()

        for key in NO_KEYS:
            with pytest.raises(ValueError, match="cannot be the key"):
                await store.get(key)
            with pytest.raises(ValueError, match="cannot be the key"):
                await store.create(key, b"1")
            with pytest.raises(ValueError, match="cannot be the key"):
                await store.update(key, b"1", expected=Revision(1))
            with pytest.raises(ValueError, match="cannot be the key"):
                await store.delete(key, expected=Revision(1))


class Revisions(Contract):
    """The order that the store gives to the writes of a bucket."""

    async def test_each_write_has_a_greater_revision_than_all_before_it(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()

        first = await here.create("a", b"1")
        other = await there.create("b", b"1")
        second = await here.update("a", b"2", expected=first.revision)
        await there.delete("b", expected=other.revision)
        again = await there.create("b", b"1")

        assert 0 < first.revision < other.revision < second.revision < again.revision

    async def test_of_an_empty_bucket_there_is_no_last_revision(self, records: RecordHarness) -> None:
        store = await records.client()

        assert await store.last_revision() == 0

    async def test_the_last_revision_is_the_newest_writes_whoever_wrote(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("a", b"1")

        for client in (there, here) * 3:
            written = await client.create(f"b.{first.revision}", b"1")
            assert await here.last_revision() == await there.last_revision() == written.revision
            first = written

    async def test_a_removal_is_a_write_with_a_revision(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("a", b"1")

        await here.delete("a", expected=first.revision)

        assert await there.last_revision() > first.revision

    async def test_what_was_refused_has_no_revision(self, records: RecordHarness) -> None:
        store = await records.client()
        first = await store.create("a", b"1")

        with pytest.raises(Conflict):
            await store.create("a", b"2")
        with pytest.raises(Conflict):
            await store.update("a", b"2", expected=Revision(first.revision + 1))
        await store.delete("b", expected=first.revision)

        assert await store.last_revision() == first.revision


async def _count_up(store: RecordStore, *, times: int) -> None:
    for _ in range(times):
        while True:
            record = await store.get("a")
            assert record is not None
            try:
                await store.update("a", b"%d" % (int(record.value) + 1), expected=record.revision)
                break
            except Conflict:
                continue
