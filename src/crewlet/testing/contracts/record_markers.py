"""Promises about removal markers and their sweep: no answer ever hangs on one."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import Record, RecordStore
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness

__all__ = ["Markers"]

_LATER = timedelta(hours=1)
_ROUNDS = 25


class Markers(Contract):
    """What a sweep takes, and what it changes: nothing that anybody is told."""

    @pytest.mark.spec("C-151")
    async def test_a_sweep_takes_the_markers_written_before_its_horizon_and_counts_them(
        self, records: RecordHarness
    ) -> None:
        here, there = await records.client(), await records.client()
        for key in ("a.1", "a.2", "b"):
            await _removed(here, key)
        await here.create("a.3", b"1")

        swept = await there.purge_markers(before=records.now() + _LATER)

        assert (swept, await there.purge_markers(before=records.now() + _LATER)) == (3, 0)

    @pytest.mark.spec("C-151")
    async def test_younger_markers_stay(self, records: RecordHarness) -> None:
        store = await records.client()
        old = await _removed(store, "a.1")
        await records.advance(0.3)
        young = await _removed(store, "a.2")
        assert young.written_at > old.written_at

        early = await store.purge_markers(before=old.written_at)
        between = await store.purge_markers(before=young.written_at)
        rest = await store.purge_markers(before=records.now() + _LATER)

        assert (early, between, rest) == (0, 1, 1)

    async def test_the_horizon_is_on_the_stores_clock(self, records: RecordHarness) -> None:
        store = await records.client()
        await _removed(store, "a.1")

        by_our_clock = await store.purge_markers(before=records.clock.now() + timedelta(seconds=45))

        assert by_our_clock == 0

    async def test_a_sweep_of_a_bucket_without_markers_takes_nothing(self, records: RecordHarness) -> None:
        store = await records.client()

        empty = await store.purge_markers(before=records.now() + _LATER)
        written = await store.create("a", b"1")
        updated = await store.update("a", b"2", expected=written.revision)
        full = await store.purge_markers(before=records.now() + _LATER)

        assert (empty, full, await store.get("a")) == (0, 0, updated)

    @pytest.mark.spec("C-156")
    async def test_a_key_that_was_created_again_survives_the_sweep(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        await _removed(here, "a")
        again = await here.create("a", b"2")

        swept = await there.purge_markers(before=records.now() + _LATER)

        assert (swept, await here.get("a"), await here.list("a")) == (0, again, [again])

    @pytest.mark.spec("C-156")
    async def test_a_key_that_is_created_again_during_the_sweep_survives_it(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        keys = [f"a.{number:02}" for number in range(12)]

        for _ in range(_ROUNDS):
            for key in keys:
                await _removed(here, key)
            _, created = await asyncio.gather(
                there.purge_markers(before=records.now() + _LATER),
                asyncio.gather(*(here.create(key, b"again") for key in keys)),
            )

            listed = await there.list("a.>")
            assert sorted(listed, key=lambda record: record.key) == created
            for record in created:
                await here.delete(record.key, expected=record.revision)

    @pytest.mark.spec("C-153")
    async def test_every_answer_is_the_same_with_all_markers_swept(self, records: RecordHarness) -> None:
        store, sweeper = await records.client(), await records.client()
        kept, old = await store.create("a.kept", b"1"), await _removed(store, "a.gone")

        with_marker = await _answers(store, old)
        await sweeper.purge_markers(before=records.now() + _LATER)
        without = await _answers(store, old)

        assert with_marker == without == {"read": None, "listed": [kept], "watched": [kept], "update": 0}
        again = await store.create("a.gone", b"2")
        assert again.revision > old.revision
        with pytest.raises(Conflict):
            await store.create("a.gone", b"3")
        with pytest.raises(Conflict):
            await store.update("a.gone", b"3", expected=old.revision)
        assert await store.get("a.gone") == again

    @pytest.mark.spec("C-153")
    async def test_a_create_beside_a_sweep_is_done_once(self, records: RecordHarness) -> None:
        clients = [await records.client() for _ in range(3)]
        for _ in range(_ROUNDS):
            await _removed(clients[0], "a")
            _, *outcomes = await asyncio.gather(
                clients[0].purge_markers(before=records.now() + _LATER),
                *(client.create("a", b"same") for client in clients),
                return_exceptions=True,
            )

            won = [outcome for outcome in outcomes if isinstance(outcome, Record)]
            assert won == [await clients[0].get("a")]
            assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 2
            await clients[0].delete("a", expected=won[0].revision)

    @pytest.mark.spec("C-003")
    async def test_a_sweep_that_is_cut_off_is_unavailable(self, records: RecordHarness) -> None:
        here, there = await records.client(), await records.client()
        await _removed(here, "a")
        await records.cut(there)

        with pytest.raises(Unavailable):
            await there.purge_markers(before=records.now() + _LATER)

        assert await here.purge_markers(before=records.now() + _LATER) == 1


async def _removed(store: RecordStore, key: str) -> Record:
    """The record under ``key`` as it was before it was removed."""
    record = await store.create(key, b"1")
    await store.delete(key, expected=record.revision)
    return record


async def _answers(store: RecordStore, gone: Record) -> dict[str, object]:
    """What is told about a record that was removed, and its neighbours."""
    await store.delete(gone.key, expected=gone.revision)
    with pytest.raises(Conflict) as caught:
        await store.update(gone.key, b"again", expected=gone.revision)
    async with store.watch("a.>") as watch:
        watched = [*watch.answer]
    listed = await store.list("a.>")
    return {"read": await store.get(gone.key), "listed": listed, "watched": watched, "update": caught.value.current}
