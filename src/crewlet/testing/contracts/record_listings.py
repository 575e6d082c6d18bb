"""Promises about listings: every record of a class that was live throughout, each once, or no answer at all."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import Record, RecordStore
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import AGED, RecordHarness
from crewlet.testing.waiting import wait_until

__all__ = ["NO_PATTERNS", "Listings", "listed_keys"]

NO_PATTERNS = (
    "",
    ">",
    "*",
    "*.a",
    "*.>",
    ".a",
    "a.",
    "a..b",
    ".>",
    "a.>.b",
    "a.*b",
    "a b",
    " a",
    "seat:",
    "a\n",
    "ä.>",
)
"""What names no class of keys, or can match none."""

_COVERED = {
    "a": ["a"],
    "a.*": ["a.b", "a.c"],
    "a.b": ["a.b"],
    "a.*.d": ["a.b.d", "a.c.d"],
    "a.b.>": ["a.b.d", "a.b.e", "a.b.e.f"],
    "a.*.e.*": ["a.b.e.f"],
    "a.*.>": ["a.b.d", "a.b.e", "a.b.e.f", "a.c.d"],
    "a.x.>": [],
}


class Listings(Contract):
    """What a listing holds, and what it refuses."""

    @pytest.mark.spec("C-012")
    async def test_a_listing_holds_every_record_of_its_class_as_a_read_would_answer(
        self, records: RecordHarness
    ) -> None:
        here, there = await records.client(), await records.client()
        written = [await here.create(f"seat.s{number}", b"%d" % number) for number in range(40)]
        written[7] = await here.update("seat.s7", b"newer", expected=written[7].revision)

        listed = await there.list("seat.>")

        assert _sorted(listed) == _sorted(written)

    async def test_a_class_without_records_is_empty(self, records: RecordHarness) -> None:
        store = await records.client()

        before = await store.list("seat.>")
        await store.create("node.n1", b"1")

        assert (before, await store.list("seat.>")) == ([], [])

    @pytest.mark.spec("C-050")
    async def test_one_class_is_listed_without_the_others(self, records: RecordHarness) -> None:
        store = await records.client()
        keys = ("seat.ada", "seat.ada.x", "seats.bob", "node.seat", "node.seat.ada", "seat")
        for key in keys:
            await store.create(key, b"1")

        assert await listed_keys(store, "seat.>") == ["seat.ada", "seat.ada.x"]
        assert await listed_keys(store, "node.>") == ["node.seat", "node.seat.ada"]
        assert await listed_keys(store, "seats.>") == ["seats.bob"]

    async def test_a_pattern_lists_what_it_covers_and_no_more(self, records: RecordHarness) -> None:
        store = await records.client()
        for key in ("a", "a.b", "a.c", "a.b.d", "a.c.d", "a.b.e", "a.b.e.f", "b.b", "b.b.d"):
            await store.create(key, b"1")

        listed = {pattern: await listed_keys(store, pattern) for pattern in _COVERED}

        assert listed == _COVERED

    @pytest.mark.spec("C-058")
    async def test_what_names_no_class_is_refused(self, records: RecordHarness) -> None:
        store = await records.client()
        await store.create("a", b"1")

        for pattern in NO_PATTERNS:
            with pytest.raises(ValueError, match="cannot be listed"):
                await store.list(pattern)

    async def test_what_was_removed_is_not_listed(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first, _ = await here.create("seat.ada", b"1"), await here.create("seat.bob", b"1")

        await here.delete("seat.ada", expected=first.revision)

        assert await listed_keys(there, "seat.>") == ["seat.bob"]

    @pytest.mark.spec("C-027", "C-042")
    async def test_what_was_removed_and_created_again_is_listed_once_as_it_is_now(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        for _ in range(10):
            first = await here.create("seat.ada", b"1")
            await here.delete("seat.ada", expected=first.revision)
            again = await here.create("seat.ada", b"2")

            listed = await there.list("seat.>")

            assert listed == [again]
            await here.delete("seat.ada", expected=again.revision)

    async def test_what_grew_too_old_is_not_listed(self, records: RecordHarness) -> None:
        store = await records.client(AGED)
        await store.create("seat.ada", b"1")
        await records.advance(AGED.age_s or 0)

        async def gone() -> bool:
            return await store.list("seat.>") == []

        await wait_until(gone, what="a listing without the aged record")

    async def test_a_listing_of_many_is_whole(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        keys = [f"seat.s{number:04}" for number in range(1200)]
        for start in range(0, len(keys), 100):
            await asyncio.gather(*(here.create(key, b"1" * 200) for key in keys[start : start + 100]))

        assert await listed_keys(there, "seat.>") == keys

    async def test_many_listings_of_one_client_at_once_are_each_whole(self, records: RecordHarness) -> None:
        store = await records.client()
        for key in ("seat.ada", "seat.bob", "node.n1"):
            await store.create(key, b"1")

        listings = await asyncio.gather(*(listed_keys(store, f"{each}.>") for each in ("seat", "node") * 10))

        assert listings == [["seat.ada", "seat.bob"], ["node.n1"]] * 10

    @pytest.mark.spec("C-014", "C-041")
    async def test_a_listing_that_is_cut_off_on_the_way_hands_out_nothing(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        keys = [f"seat.s{number:03}" for number in range(150)]
        await asyncio.gather(*(here.create(key, b"1" * 200) for key in keys))

        for turns in (0, 1, 2, 3, 4, 6, 9, 14):
            listing, _ = await asyncio.gather(
                there.list("seat.>"), _cut_after(records, there, turns=turns), return_exceptions=True
            )
            if not isinstance(listing, Unavailable):
                assert not isinstance(listing, BaseException), listing
                assert sorted(record.key for record in listing) == keys
            await records.mend(there)

    async def test_a_listing_sees_what_was_written_before_it_began(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        newest = await here.create("seat.ada", b"0")
        for number in range(20):
            newest = await here.update("seat.ada", b"%d" % number, expected=newest.revision)

            assert await there.list("seat.>") == [newest]


async def listed_keys(store: RecordStore, pattern: str) -> list[str]:
    """The keys that a listing holds, in order; one that it holds twice stands there twice."""
    return sorted(record.key for record in await store.list(pattern))


def _sorted(listed: list[Record]) -> list[Record]:
    return sorted(listed, key=lambda record: record.key)


async def _cut_after(records: RecordHarness, store: RecordStore, *, turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
    await records.cut(store)
