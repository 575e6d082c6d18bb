"""Promises about the notification valve: so many a second to one seat, however many nodes count."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from random import Random
from typing import ClassVar

import pytest

from crewlet.coordination import RATE, RateValve, RecordStore
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness

__all__ = ["RateValvePromises"]


class RateValvePromises(Contract):
    """The valve: counted by the fleet, on the store's clock, shut when the store is out of reach."""

    kind: ClassVar[type[RateValve]] = RateValve

    def over(self, store: RecordStore) -> RateValve:
        """The valve as a node has it."""
        return self.kind(store, Random(7))

    async def node(self, records: RecordHarness) -> RateValve:
        """That of a node of its own."""
        return self.over(await records.client(RATE))

    async def begun(self, records: RecordHarness) -> None:
        """A second has just begun on the store's clock."""
        await records.advance(1.05 - records.now().timestamp() % 1)

    @pytest.mark.spec("C-067")
    async def test_four_nodes_let_through_what_one_may(self, records: RecordHarness) -> None:
        nodes = [await self.node(records) for _ in range(4)]
        await self.begun(records)

        began = records.now().timestamp()
        passed = await asyncio.gather(*(nodes[each % 4].admits("ceo", cap=5) for each in range(32)))
        windows = math.floor(records.now().timestamp()) - math.floor(began) + 1

        assert 5 <= sum(passed) <= 5 * windows

    async def test_the_next_second_lets_through_again(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        await self.begun(records)
        while await here.admits("ceo", cap=2):
            pass

        await records.advance(1.2)

        assert await there.admits("ceo", cap=2)

    async def test_a_seats_storm_shuts_no_other_seats_valve(self, records: RecordHarness) -> None:
        node = await self.node(records)
        await self.begun(records)
        while await node.admits("ceo", cap=1):
            pass

        assert await node.admits("cto", cap=1)

    async def test_what_is_below_the_cap_passes_however_many_count_at_once(self, records: RecordHarness) -> None:
        nodes = [await self.node(records) for _ in range(4)]

        passed = await asyncio.gather(*(nodes[each % 4].admits("ceo", cap=1000) for each in range(32)))

        assert all(passed)

    @pytest.mark.spec("C-006")
    async def test_what_cannot_be_counted_does_not_pass(self, records: RecordHarness) -> None:
        store = await records.client(RATE)
        node = self.over(store)
        before = await node.admits("ceo", cap=5)
        await records.cut(store)

        assert before
        assert not await node.admits("ceo", cap=5)

    async def test_a_valve_that_is_off_asks_nobody(self, records: RecordHarness) -> None:
        store = await records.client(RATE)
        node = self.over(store)
        await records.cut(store)

        assert await node.admits("ceo", cap=0)

    @pytest.mark.spec("C-110", "C-122")
    async def test_a_window_that_was_counted_in_often_goes_with_its_bucket(self, records: RecordHarness) -> None:
        store = await records.client(replace(RATE, age_s=2.0))
        node = self.over(store)
        for _ in range(4):
            await node.admits("ceo", cap=5)
        held = await store.list("seat.>")

        await records.advance(3.5)

        assert len(held) == 1
        assert await store.list("seat.>") == []

    @pytest.mark.spec("C-122")
    async def test_a_window_takes_the_place_of_the_one_before_it(self, records: RecordHarness) -> None:
        store = await records.client(RATE)
        node = self.over(store)
        await node.admits("ceo", cap=5)
        await records.advance(1.2)

        await node.admits("ceo", cap=5)

        assert len(await store.list("seat.>")) == 1

    async def test_the_valve_opens_again_after_a_change_of_leader(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        await here.admits("ceo", cap=1)

        await records.disturb()
        await records.advance(1.2)

        assert await there.admits("ceo", cap=1)
