"""Promises about a node's copy of the pauses: unknown before the first answer, and never wrong for long after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import ClassVar, cast

import pytest
from msgspec.structs import replace

from crewlet.base.errors import Unavailable
from crewlet.coordination import POSITIONS, PauseCopy, RecordStore, SeatPause, SeatPauses, Watch
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.slot_outside import damage
from crewlet.testing.contracts.slot_seat_pauses import PAUSE, STOP
from crewlet.testing.waiting import wait_until

__all__ = ["PauseCopyPromises"]

Edge = tuple[str, SeatPause | None]


class Edges:
    """What a copy told, in order. While ``deaf``, it is told for nothing."""

    def __init__(self) -> None:
        self.told: list[Edge] = []
        self.deaf = False
        self.refused = 0

    async def __call__(self, handle: str, pause: SeatPause | None) -> None:
        if self.deaf:
            self.refused += 1
            raise Unavailable("the queue does not answer")
        self.told.append((handle, pause))

    async def hears(self, *edges: Edge) -> None:
        """Return once exactly this was told."""
        await wait_until(lambda: self.told == [*edges], what=f"{edges}; told was {self.told}")


class Counted:
    """A store that counts what a copy asks of it; nothing but watching is expected."""

    def __init__(self, store: RecordStore) -> None:
        self.store = store
        self.watches: list[tuple[str, ...]] = []

    def watch(self, *patterns: str) -> AbstractAsyncContextManager[Watch]:
        """Watch, counted."""
        self.watches.append(patterns)
        return self.store.watch(*patterns)

    def __getattr__(self, verb: str) -> object:
        raise AssertionError(f"a copy of the pauses asked for {verb}")


class PauseCopyPromises(Contract):
    """What a node knows of the pauses, from its boot through outages to its end."""

    kind: ClassVar[type[PauseCopy]] = PauseCopy

    @asynccontextmanager
    async def _following(
        self, records: RecordHarness, store: RecordStore, edges: Edges | None = None
    ) -> AsyncGenerator[PauseCopy]:
        copy = self.kind(store, records.clock, edges or Edges())
        copy.start()
        try:
            yield copy
        finally:
            await copy.close()

    async def test_until_the_store_answered_nothing_is_known_and_nobody_is_told_not_paused(
        self, records: RecordHarness
    ) -> None:
        store, pauses = await records.client(POSITIONS), SeatPauses(await records.client(POSITIONS))
        await pauses.pause(PAUSE)
        await records.cut(store)
        async with self._following(records, store) as copy:
            await records.quiet()
            known = copy.known
            for handle in ("cto", "ceo"):
                with pytest.raises(Unavailable):
                    copy.paused(handle)
            behind_s = copy.behind_s

            await records.mend(store)
            await copy.wait_known()

            assert (known, behind_s > 0) == (False, True)
            assert (copy.known, copy.paused("cto"), copy.paused("ceo")) == (True, PAUSE, None)
            assert copy.behind_s == 0

    async def test_the_first_answer_holds_every_pause_that_stands_and_is_told(self, records: RecordHarness) -> None:
        store, edges = await records.client(POSITIONS), Edges()
        pauses = SeatPauses(await records.client(POSITIONS))
        for number in range(20):
            await pauses.pause(replace(PAUSE, handle=f"seat-{number:02}"))
        await pauses.lift("seat-07")
        standing = await pauses.every()

        async with self._following(records, store, edges) as copy:
            await edges.hears(*((pause.handle, pause) for pause in standing))

            assert [copy.paused(pause.handle) for pause in standing] == standing
            assert copy.paused("seat-07") is None

    async def test_a_pause_and_its_end_are_followed_and_told(self, records: RecordHarness) -> None:
        store, edges = await records.client(POSITIONS), Edges()
        pauses = SeatPauses(await records.client(POSITIONS))
        async with self._following(records, store, edges) as copy:
            await copy.wait_known()

            await pauses.pause(PAUSE)
            await edges.hears(("cto", PAUSE))
            held = copy.paused("cto")
            await pauses.lift("cto")
            await edges.hears(("cto", PAUSE), ("cto", None))

            assert (held, copy.paused("cto")) == (PAUSE, None)

    async def test_a_pause_that_comes_to_stop_what_runs_is_told_again(self, records: RecordHarness) -> None:
        store, edges = await records.client(POSITIONS), Edges()
        pauses = SeatPauses(await records.client(POSITIONS))
        async with self._following(records, store, edges):
            await pauses.pause(PAUSE)
            await edges.hears(("cto", PAUSE))

            await pauses.pause(STOP)

            await edges.hears(("cto", PAUSE), ("cto", replace(PAUSE, stop_running=True)))

    async def test_what_changed_while_nothing_was_followed_is_known_and_told_after_it(
        self, records: RecordHarness
    ) -> None:
        store, edges = await records.client(POSITIONS), Edges()
        pauses, other = SeatPauses(await records.client(POSITIONS)), replace(PAUSE, handle="coo")
        await pauses.pause(PAUSE)
        await pauses.pause(replace(PAUSE, handle="cfo"))
        async with self._following(records, store, edges) as copy:
            await wait_until(lambda: len(edges.told) == 2)
            edges.told.clear()
            await records.cut(store)
            await pauses.lift("cto")
            await pauses.pause(other)
            await records.quiet()

            during = (copy.known, copy.paused("cto"), copy.paused("coo"), copy.behind_s > 0, [*edges.told])
            await records.mend(store)
            await edges.hears(("coo", other), ("cto", None))

            assert during == (True, PAUSE, None, True, [])
            assert (copy.paused("cto"), copy.paused("coo"), copy.behind_s) == (None, other, 0)

    async def test_a_change_of_the_buckets_leader_is_followed_through(self, records: RecordHarness) -> None:
        store, edges = await records.client(POSITIONS), Edges()
        pauses = SeatPauses(await records.client(POSITIONS))
        async with self._following(records, store, edges) as copy:
            await copy.wait_known()
            await records.disturb()

            await pauses.pause(PAUSE)
            await edges.hears(("cto", PAUSE))
            await records.disturb()
            await pauses.lift("cto")

            await edges.hears(("cto", PAUSE), ("cto", None))

    async def test_what_could_not_be_applied_is_told_again(self, records: RecordHarness) -> None:
        store, edges = await records.client(POSITIONS), Edges()
        pauses = SeatPauses(await records.client(POSITIONS))
        edges.deaf = True
        async with self._following(records, store, edges) as copy:
            await pauses.pause(PAUSE)
            await wait_until(lambda: edges.refused > 0)

            edges.deaf = False

            await edges.hears(("cto", PAUSE))
            assert copy.paused("cto") == PAUSE

    async def test_what_was_told_is_not_told_again_by_another_answer(self, records: RecordHarness) -> None:
        store, edges = await records.client(POSITIONS), Edges()
        pauses, other = SeatPauses(await records.client(POSITIONS)), replace(PAUSE, handle="coo")
        await pauses.pause(PAUSE)
        async with self._following(records, store, edges):
            await edges.hears(("cto", PAUSE))
            await records.cut(store)
            await records.mend(store)

            await pauses.pause(other)

            await edges.hears(("cto", PAUSE), ("coo", other))

    async def test_a_pause_that_cannot_be_read_is_not_taken_for_none(self, records: RecordHarness) -> None:
        store, outside = await records.client(POSITIONS), await records.client(POSITIONS)
        await SeatPauses(outside).pause(PAUSE)
        await damage(outside, "seat_pause.cto")
        async with self._following(records, store) as copy:
            await records.quiet()

            with pytest.raises(Unavailable):
                copy.paused("cto")

    @pytest.mark.spec("C-039")
    async def test_each_opening_is_one_watch_and_nothing_else_is_asked(self, records: RecordHarness) -> None:
        store, edges = await records.client(POSITIONS), Edges()
        pauses, counted = SeatPauses(await records.client(POSITIONS)), Counted(store)
        async with self._following(records, cast("RecordStore", counted), edges):
            await pauses.pause(PAUSE)
            await edges.hears(("cto", PAUSE))
            await records.quiet()
            at_boot = len(counted.watches)
            await records.cut(store)
            await pauses.lift("cto")
            await records.mend(store)
            await edges.hears(("cto", PAUSE), ("cto", None))
            after_an_outage = len(counted.watches)
            await records.quiet()

            assert at_boot == 1
            assert after_an_outage == len(counted.watches) >= 2
            assert {*counted.watches} == {("seat_pause.>",)}

    async def test_a_copy_that_is_closed_leaves_nothing_running(self, records: RecordHarness) -> None:
        store, edges = await records.client(POSITIONS), Edges()
        pauses = SeatPauses(await records.client(POSITIONS))
        before = asyncio.all_tasks()
        async with self._following(records, store, edges) as copy:
            await copy.wait_known()
            await pauses.pause(PAUSE)
            await edges.hears(("cto", PAUSE))

        await wait_until(lambda: asyncio.all_tasks() <= before, what="no task of a copy that was closed")
        await pauses.lift("cto")
        await records.quiet()

        assert (copy.paused("cto"), edges.told) == (PAUSE, [("cto", PAUSE)])
