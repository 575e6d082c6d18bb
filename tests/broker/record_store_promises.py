"""What every record store promises, whatever is behind it; a class for each backend inherits it."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base.errors import Conflict
from crewlet.coordination import RecordStore, Revision


class RecordStorePromises:
    """Tests for a ``store`` fixture that yields an empty bucket."""

    async def test_a_record_is_read_as_it_was_written(self, store: RecordStore) -> None:
        written = await store.create("a.b", b"\x00\xff")

        assert await store.get("a.b") == written
        assert (written.key, written.value) == ("a.b", b"\x00\xff")
        assert written.written_at.tzinfo is not None

    async def test_a_key_never_written_is_absent(self, store: RecordStore) -> None:
        assert await store.get("nothing") is None

    async def test_a_create_is_exclusive_and_names_what_stands(self, store: RecordStore) -> None:
        first = await store.create("a", b"1")

        with pytest.raises(Conflict) as caught:
            await store.create("a", b"2")

        assert caught.value.current == first.revision
        assert await store.get("a") == first

    async def test_of_many_creates_one_wins_even_with_equal_bytes(self, store: RecordStore) -> None:
        outcomes = await asyncio.gather(*(store.create("a", b"same") for _ in range(10)), return_exceptions=True)

        assert sum(not isinstance(outcome, Conflict) for outcome in outcomes) == 1

    async def test_an_update_replaces_what_it_expects_alone(self, store: RecordStore) -> None:
        first = await store.create("a", b"1")
        second = await store.update("a", b"2", expected=first.revision)

        with pytest.raises(Conflict) as caught:
            await store.update("a", b"3", expected=first.revision)

        assert (caught.value.expected, caught.value.current) == (first.revision, second.revision)
        assert await store.get("a") == second
        assert second.revision > first.revision

    async def test_of_many_updates_one_wins(self, store: RecordStore) -> None:
        first = await store.create("a", b"0")
        updates = (store.update("a", b"same", expected=first.revision) for _ in range(10))

        outcomes = await asyncio.gather(*updates, return_exceptions=True)

        assert sum(not isinstance(outcome, Conflict) for outcome in outcomes) == 1

    async def test_an_update_of_an_absent_key_conflicts(self, store: RecordStore) -> None:
        with pytest.raises(Conflict) as caught:
            await store.update("a", b"1", expected=Revision(7))

        assert caught.value.current == 0
        assert await store.get("a") is None

    async def test_a_removed_record_is_absent(self, store: RecordStore) -> None:
        first = await store.create("a", b"1")

        await store.delete("a", expected=first.revision)

        assert await store.get("a") is None

    async def test_a_removal_takes_what_it_expects_alone(self, store: RecordStore) -> None:
        first = await store.create("a", b"1")
        second = await store.update("a", b"2", expected=first.revision)

        with pytest.raises(Conflict) as caught:
            await store.delete("a", expected=first.revision)

        assert caught.value.current == second.revision
        assert await store.get("a") == second

    async def test_removing_what_is_absent_is_no_error(self, store: RecordStore) -> None:
        first = await store.create("a", b"1")
        await store.delete("a", expected=first.revision)

        await store.delete("a", expected=first.revision)
        await store.delete("never", expected=Revision(3))

        assert await store.get("a") is None

    async def test_a_removed_key_is_created_again_above_its_removal(self, store: RecordStore) -> None:
        first = await store.create("a", b"1")
        await store.delete("a", expected=first.revision)

        again = await store.create("a", b"2")

        assert await store.get("a") == again
        assert again.revision > first.revision

    async def test_of_many_creates_over_a_removal_one_wins(self, store: RecordStore) -> None:
        first = await store.create("a", b"1")
        await store.delete("a", expected=first.revision)

        outcomes = await asyncio.gather(*(store.create("a", b"same") for _ in range(10)), return_exceptions=True)

        assert sum(not isinstance(outcome, Conflict) for outcome in outcomes) == 1

    async def test_an_old_revision_does_not_come_back_with_its_key(self, store: RecordStore) -> None:
        first = await store.create("a", b"1")
        await store.delete("a", expected=first.revision)
        await store.create("a", b"1")

        with pytest.raises(Conflict):
            await store.update("a", b"2", expected=first.revision)

    async def test_keys_do_not_touch_each_other(self, store: RecordStore) -> None:
        first = await store.create("a", b"1")
        await store.create("b", b"2")

        await store.update("a", b"3", expected=first.revision)

        other = await store.get("b")
        assert other is not None
        assert other.value == b"2"

    @pytest.mark.parametrize("key", ["", "a b", "a*", ">", ".a", "a.", "a..b", "ä", "a\nb"])
    async def test_a_key_that_a_bucket_cannot_hold_is_refused(self, store: RecordStore, key: str) -> None:
        with pytest.raises(ValueError, match="cannot be the key"):
            await store.create(key, b"1")
