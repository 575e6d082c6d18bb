"""Promises about the third answer: what could not be asked or was not heard is unknown, and never a no."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import Record, RecordStore
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness

__all__ = ["LateWrites", "LostReplies", "Unknowns"]


class Unknowns(Contract):
    """What a client is told that reaches nothing."""

    @pytest.mark.spec("C-003", "C-055")
    async def test_no_verb_takes_a_store_out_of_reach_for_an_answer(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("a", b"1")
        await records.cut(there)

        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: there.get("a"),
            lambda: there.get("never"),
            lambda: there.create("a", b"2"),
            lambda: there.create("b", b"1"),
            lambda: there.update("a", b"2", expected=first.revision),
            lambda: there.delete("a", expected=first.revision),
            lambda: there.delete("never", expected=first.revision),
            lambda: there.list("a"),
            lambda: there.list("never.>"),
            there.last_revision,
            lambda: there.purge_markers(before=records.now()),
        ]
        for call in calls:
            with pytest.raises(Unavailable):
                await call()

        assert await here.list("a") == [first]
        assert (await here.get("b"), await here.last_revision()) == (None, first.revision)

    async def test_once_the_link_is_whole_every_verb_answers_again(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("a", b"1")
        await records.cut(there)
        await records.mend(there)

        assert await there.get("a") == first
        assert await there.list("a") == [first]
        second = await there.update("a", b"2", expected=first.revision)
        async with there.watch("a") as watch:
            assert watch.answer == (second,)
        await there.delete("a", expected=second.revision)
        assert await here.get("a") is None

    async def test_what_is_told_of_the_time_out_of_reach_is_right_or_unknown(self, records: RecordHarness) -> None:
        store = await records.client()
        await store.time()
        await records.cut(store)

        for _ in range(3):
            await records.advance(0.3)
            before = records.now()
            try:
                told = await store.time()
            except Unavailable:
                continue
            assert told.earliest <= records.now()
            assert told.latest >= before

    async def test_a_caller_that_gives_up_on_the_way_spoils_nothing_for_the_next(self, records: RecordHarness) -> None:
        store = await records.client()
        keys = [f"a.{number:02}" for number in range(30)]
        for key in keys:
            await store.create(key, b"1")

        for turns in (0, 1, 2, 3, 5, 8, 13):
            for call in (lambda: store.list("a.>"), lambda: store.get("a.00"), lambda: _watched(store)):
                await _given_up(call, turns=turns)

            assert sorted(record.key for record in await store.list("a.>")) == keys
            async with store.watch("a.>") as watch:
                assert len(watch.answer) == len(keys)
            assert await store.get("a.00") is not None

    async def test_one_client_out_of_reach_is_no_others_trouble(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("a", b"1")

        async with here.watch("a") as watch:
            await records.cut(there)
            second = await here.update("a", b"2", expected=first.revision)

            assert (await watch.next()).record == second

    async def test_through_a_change_of_leader_no_write_that_was_told_is_lost(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        told = await here.create("a", b"0")

        for number in range(12):
            if number % 4 == 1:
                await records.disturb()
            told = await _updated(here, told)
            seen = await _known(there, "a")

            assert seen == told


class LostReplies(Contract):
    """Writes that landed, of which nobody heard at first."""

    async def test_a_write_whose_reply_was_lost_is_returned_as_written(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()

        records.lose_reply(here)
        created = await here.create("a", b"1")
        seen = await there.get("a")
        records.lose_reply(here)
        updated = await here.update("a", b"1", expected=created.revision)

        assert seen == created
        assert await there.get("a") == updated
        assert updated.revision > created.revision

    async def test_a_removal_whose_reply_was_lost_is_done(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await here.create("a", b"1")

        records.lose_reply(here)
        await here.delete("a", expected=first.revision)

        assert await there.get("a") is None

    async def test_what_somebody_else_wrote_is_never_taken_for_ones_own(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        first = await there.create("a", b"same")
        second = await there.update("a", b"same", expected=first.revision)

        for write in (
            lambda: here.create("a", b"same"),
            lambda: here.update("a", b"same", expected=first.revision),
            lambda: here.delete("a", expected=first.revision),
        ):
            records.lose_reply(here)
            with pytest.raises((Conflict, Unavailable)):
                await write()

        assert await there.get("a") == second

    async def test_a_write_that_cannot_be_read_back_is_unknown_though_it_landed(self, records: RecordHarness) -> None:
        here, far = await records.client(), [await records.client() for _ in range(3)]
        kept, gone = await here.create("kept", b"1"), await here.create("gone", b"1")
        for client in far:
            records.cut_after_write(client)

        outcomes = await asyncio.gather(
            far[0].create("new", b"1"),
            far[1].update("kept", b"2", expected=kept.revision),
            far[2].delete("gone", expected=gone.revision),
            return_exceptions=True,
        )

        assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
        assert (await _value(here, "new"), await _value(here, "kept"), await _value(here, "gone")) == (b"1", b"2", None)


class LateWrites(Contract):
    """Writes that land after they failed."""

    async def test_a_write_that_lands_late_was_unknown_and_is_seen_by_the_next_read(
        self, records: RecordHarness
    ) -> None:
        here, far = await records.client(), [await records.client() for _ in range(3)]
        kept, gone = await here.create("kept", b"1"), await here.create("gone", b"1")
        for client in far:
            records.withhold(client)

        outcomes = await asyncio.gather(
            far[0].create("new", b"1"),
            far[1].update("kept", b"2", expected=kept.revision),
            far[2].delete("gone", expected=gone.revision),
            return_exceptions=True,
        )
        before = (await _value(here, "new"), await _value(here, "kept"), await _value(here, "gone"))
        for client in far:
            await records.deliver(client)
        after = (await _value(here, "new"), await _value(here, "kept"), await _value(here, "gone"))

        assert all(isinstance(outcome, Unavailable) for outcome in outcomes), outcomes
        assert (before, after) == ((None, b"1", b"1"), (b"1", b"2", None))

    async def test_a_late_write_takes_nothing_that_was_written_meanwhile(self, records: RecordHarness) -> None:
        here, far = await records.client(), [await records.client() for _ in range(3)]
        first, other = await here.create("a", b"1"), await here.create("b", b"1")
        for client in far:
            records.withhold(client)
        await asyncio.gather(
            far[0].create("new", b"late"),
            far[1].update("a", b"late", expected=first.revision),
            far[2].delete("b", expected=other.revision),
            return_exceptions=True,
        )
        stands = {
            "new": await here.create("new", b"2"),
            "a": await here.update("a", b"2", expected=first.revision),
            "b": await here.update("b", b"2", expected=other.revision),
        }

        for client in far:
            await records.deliver(client)

        assert {key: await here.get(key) for key in stands} == stands


async def _watched(store: RecordStore) -> None:
    async with store.watch("a.>") as watch:
        await watch.next()


async def _given_up(call: Callable[[], Awaitable[object]], *, turns: int) -> None:
    """Wait for ``call`` for so many turns of the loop and no longer."""

    async def wait() -> None:
        await call()

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wait())
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()


async def _updated(store: RecordStore, record: Record) -> Record:
    """Write the next number over ``record``, whatever the store is going through: who does not know looks first."""
    wanted = b"%d" % (int(record.value) + 1)
    while True:
        try:
            return await store.update(record.key, wanted, expected=record.revision)
        except Unavailable:
            found = await _known(store, record.key)
            assert found is not None
            if found.value == wanted:
                return found
            assert found == record


async def _known(store: RecordStore, key: str) -> Record | None:
    while True:
        try:
            return await store.get(key)
        except Unavailable:
            await asyncio.sleep(0.01)


async def _value(store: RecordStore, key: str) -> bytes | None:
    record = await store.get(key)
    return None if record is None else record.value
