"""Promises about what was removed: it is gone, its key is free, and its revisions are dead."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base.errors import Conflict
from crewlet.coordination import Revision
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness

__all__ = ["Removals"]


class Removals(Contract):
    """What is true after a removal."""

    async def test_a_removed_record_is_absent(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("a", b"1")

        await there.delete("a", expected=first.revision)

        assert await here.get("a") is None

    async def test_a_removal_takes_what_it_expects_alone(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("a", b"1")
        second = await here.update("a", b"2", expected=first.revision)

        with pytest.raises(Conflict) as caught:
            await there.delete("a", expected=first.revision)

        assert (caught.value.expected, caught.value.current) == (first.revision, second.revision)
        assert await there.get("a") == second

    async def test_removing_what_is_absent_is_no_error(self, records: RecordHarness) -> None:
        store = await records.client()
        first = await store.create("a", b"1")
        await store.delete("a", expected=first.revision)

        await store.delete("a", expected=first.revision)
        await store.delete("never", expected=Revision(3))

        assert await store.get("a") is None

    async def test_a_removed_key_is_created_again_above_its_removal(self, records: RecordHarness) -> None:
        store = await records.client()
        first = await store.create("a", b"1")
        await store.delete("a", expected=first.revision)
        removed = await store.last_revision()

        again = await store.create("a", b"2")

        assert await store.get("a") == again
        assert again.revision > removed

    @pytest.mark.spec("C-153")
    async def test_of_many_creates_over_a_removal_one_wins(self, records: RecordHarness) -> None:
        clients = [await records.client() for _ in range(3)]
        first = await clients[0].create("a", b"1")
        await clients[0].delete("a", expected=first.revision)

        outcomes = await asyncio.gather(
            *(client.create("a", b"same") for client in clients * 4), return_exceptions=True
        )

        won = [outcome for outcome in outcomes if not isinstance(outcome, Conflict)]
        assert won == [await clients[0].get("a")]

    async def test_an_update_never_revives_what_was_removed(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("a", b"1")
        await here.delete("a", expected=first.revision)

        with pytest.raises(Conflict) as caught:
            await there.update("a", b"2", expected=first.revision)

        assert caught.value.current == 0
        assert await there.get("a") is None

    async def test_an_old_revision_does_not_come_back_with_its_key(self, records: RecordHarness) -> None:
        store = await records.client()
        first = await store.create("a", b"1")
        await store.delete("a", expected=first.revision)
        again = await store.create("a", b"1")

        with pytest.raises(Conflict):
            await store.update("a", b"2", expected=first.revision)
        with pytest.raises(Conflict):
            await store.delete("a", expected=first.revision)

        assert await store.get("a") == again

    async def test_of_a_removal_and_an_update_of_one_revision_one_is_done(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        for number in range(10):
            key = f"a.{number}"
            first = await here.create(key, b"1")

            updated, removed = await asyncio.gather(
                here.update(key, b"2", expected=first.revision),
                there.delete(key, expected=first.revision),
                return_exceptions=True,
            )

            left = await here.get(key)
            if isinstance(removed, Conflict):
                assert left == updated
            else:
                assert (type(updated), left) == (Conflict, None)
