"""Promises about histories: whatever happens to the links and the leaders, every write was over what it expected."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import RecordStore, Revision
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_churn import BREATH_S, Work, meanwhile
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.waiting import wait_until

__all__ = ["Histories"]

_CLIENTS = 4
_TROUBLES = 24
_KEY = "a.register"


@dataclass(slots=True)
class _History:
    """What the clients of one register were told.

    ``told``: each write that was told as done, what it was over and its revision. ``unknown``: how many were neither
    done nor refused, as far as was told. ``removed``: the revisions that somebody asked to have removed.
    """

    told: list[tuple[int, Revision]] = field(default_factory=list[tuple[int, Revision]])
    unknown: int = 0
    removed: set[Revision] = field(default_factory=set[Revision])


class Histories(Contract):
    """What many clients are told together while their links are spoiled and leaders change."""

    async def test_no_two_writes_are_done_over_one_revision_and_none_that_was_told_is_missing(
        self, records: RecordHarness
    ) -> None:
        clients, eye = [await records.client() for _ in range(_CLIENTS)], await records.client()
        await eye.create(_KEY, b"0")
        history = _History()

        async with meanwhile(*(_counting(records, client, history) for client in clients)):
            await _trouble(records, clients, disturb=False)
            await wait_until(lambda: len(history.told) > _TROUBLES, what="a history that goes on")
        await _mended(records, clients)

        total = await eye.get(_KEY)
        assert total is not None
        over = [expected for expected, _ in history.told]
        assert len({*over}) == len(over)
        assert all(revision > expected for expected, revision in history.told)
        assert max(revision for _, revision in history.told) <= total.revision
        assert len(history.told) <= int(total.value) <= len(history.told) + history.unknown

    async def test_through_changes_of_leader_too(self, records: RecordHarness) -> None:
        clients, eye = [await records.client() for _ in range(_CLIENTS)], await records.client()
        await eye.create(_KEY, b"0")
        history = _History()

        async with meanwhile(*(_counting(records, client, history) for client in clients)):
            for _ in range(3):
                await records.disturb()
                await _trouble(records, clients, disturb=True)
        await _mended(records, clients)

        total = await eye.get(_KEY)
        assert total is not None
        over = [expected for expected, _ in history.told]
        assert len({*over}) == len(over)
        assert len(history.told) <= int(total.value) <= len(history.told) + history.unknown

    async def test_a_key_is_created_again_only_after_whoever_created_it_had_it_removed(
        self, records: RecordHarness
    ) -> None:
        clients = [await records.client() for _ in range(_CLIENTS)]
        history = _History()

        works = [_holding(records, client, history, b"%d" % number) for number, client in enumerate(clients)]
        async with meanwhile(*works):
            await _trouble(records, clients, disturb=False)
            await wait_until(lambda: len(history.told) > _TROUBLES, what="a history that goes on")
        await _mended(records, clients)

        created = sorted(revision for _, revision in history.told)
        assert len({*created}) == len(created)
        assert {*created[:-1]} <= history.removed


def _counting(records: RecordHarness, store: RecordStore, history: _History) -> Work:
    """Read the number that stands and write the next over it."""

    async def once() -> None:
        await records.advance(BREATH_S)
        try:
            record = await store.get(_KEY)
        except Unavailable:
            return
        assert record is not None
        try:
            written = await store.update(_KEY, b"%d" % (int(record.value) + 1), expected=record.revision)
        except Unavailable:
            history.unknown += 1
        except Conflict:
            return
        else:
            history.told.append((record.revision, written.revision))

    return once


def _holding(records: RecordHarness, store: RecordStore, history: _History, name: bytes) -> Work:
    """Create the record, hold it and have it removed; whoever does not know whether it did looks for its name."""

    async def once() -> None:
        await records.advance(BREATH_S)
        try:
            mine = await store.get(_KEY)
            if mine is None:
                mine = await store.create(_KEY, name)
                history.told.append((0, mine.revision))
                await records.advance(2 * BREATH_S)
                assert await store.get(_KEY) == mine, "what nobody was asked to remove is there"
            if mine.value == name:
                history.removed.add(mine.revision)
                await store.delete(_KEY, expected=mine.revision)
        except (Conflict, Unavailable):
            return

    return once


async def _trouble(records: RecordHarness, clients: list[RecordStore], *, disturb: bool) -> None:
    """Spoil one link after another, and let some work be done in between."""
    chance = random.Random(records.ids.hex(8))
    for _ in range(_TROUBLES // (6 if disturb else 1)):
        client = chance.choice(clients)
        match chance.choice(("cut", "lose", "lose", "withhold")):
            case "cut":
                await records.cut(client)
                await records.advance(5 * BREATH_S)
                await records.mend(client)
            case "lose":
                records.lose_reply(client)
            case _:
                records.withhold(client)
        await records.advance(20 * BREATH_S)
        await records.deliver(client)


async def _mended(records: RecordHarness, clients: list[RecordStore]) -> None:
    for client in clients:
        await records.mend(client)
        await records.deliver(client)
