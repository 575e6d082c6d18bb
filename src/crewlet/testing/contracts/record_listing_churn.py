"""Promises about what a listing holds while others write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import RecordStore
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_churn import BREATH_S, meanwhile, recreating, rewriting
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.record_listings import listed_keys
from crewlet.testing.waiting import wait_until

__all__ = ["ListingsUnderChange"]

_SEATS = [f"seat.s{number}" for number in range(5)]
_LOOKS = 60


class ListingsUnderChange(Contract):
    """What a listing holds while others write."""

    @pytest.mark.spec("C-012", "C-020", "C-040", "C-042")
    async def test_a_record_that_is_rewritten_all_the_time_is_in_every_listing_once(
        self, records: RecordHarness
    ) -> None:
        watcher, writers = await records.client(), [await records.client() for _ in range(3)]
        for key in _SEATS:
            await watcher.create(key, b"1")

        async with meanwhile(*map(rewriting, writers, _SEATS)):
            for _ in range(_LOOKS):
                assert await listed_keys(watcher, "seat.>") == _SEATS
                await records.advance(BREATH_S)

    async def test_a_listing_is_never_older_than_what_was_written_before_it(self, records: RecordHarness) -> None:
        watcher, writers = await records.client(), [await records.client() for _ in range(3)]
        for key in _SEATS:
            await watcher.create(key, b"1")

        async with meanwhile(*map(rewriting, writers, _SEATS)):
            for _ in range(_LOOKS):
                before = {key: await _revision(watcher, key) for key in _SEATS}
                listed = {record.key: record for record in await watcher.list("seat.>")}
                assert all(listed[key].revision >= revision for key, revision in before.items())
                await records.advance(BREATH_S)

    @pytest.mark.spec("C-012", "C-043")
    async def test_keys_that_come_and_go_hide_none_that_stays(self, records: RecordHarness) -> None:
        watcher, writers = await records.client(), [await records.client() for _ in range(2)]
        for key in _SEATS:
            await watcher.create(key, b"1")

        async with meanwhile(*(recreating(writer, f"seat.t{number}") for number, writer in enumerate(writers))):
            for _ in range(_LOOKS):
                listed = await listed_keys(watcher, "seat.>")
                assert {*_SEATS} <= {*listed} <= {*_SEATS, "seat.t0", "seat.t1"}
                assert len({*listed}) == len(listed)
                await records.advance(BREATH_S)

    @pytest.mark.spec("C-040")
    async def test_a_change_of_leader_makes_no_listing_shorter(self, records: RecordHarness) -> None:
        watcher, writer = await records.client(), await records.client()
        for key in _SEATS:
            await watcher.create(key, b"1")
        answers: list[list[str]] = []

        async def look() -> None:
            try:
                answers.append(await listed_keys(watcher, "seat.>"))
            except Unavailable:
                await records.advance(BREATH_S)

        async def rewrite() -> None:
            try:
                await rewriting(writer, _SEATS[0])()
            except Unavailable:
                await records.advance(BREATH_S)

        async with meanwhile(look, rewrite):
            for _ in range(3):
                await records.disturb()
                await wait_until(_grows(answers), what="listings that go on")

        assert all(answer == _SEATS for answer in answers)


async def _revision(store: RecordStore, key: str) -> int:
    record = await store.get(key)
    return 0 if record is None else record.revision


def _grows(answers: list[list[str]]) -> Callable[[], bool]:
    enough = len(answers) + 3
    return lambda: len(answers) >= enough
