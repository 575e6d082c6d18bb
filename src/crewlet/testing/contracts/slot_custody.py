"""Promises about custody: one data node keeps a batch, and every writer of it learns which."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import CUSTODY, Custodies, RecordStore
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.slot_unheard import goes_unheard

__all__ = ["CustodyPromises"]


class CustodyPromises(Contract):
    """Custody: created once, never changed, unknown when the store is out of reach."""

    kind: ClassVar[type[Custodies]] = Custodies

    def over(self, store: RecordStore, records: RecordHarness) -> Custodies:
        """Custody as a node reads it."""
        return self.kind(store, records.clock)

    async def node(self, records: RecordHarness) -> Custodies:
        """That of a node of its own."""
        return self.over(await records.client(CUSTODY), records)

    @pytest.mark.spec("C-084")
    async def test_of_two_writers_of_a_batch_the_first_claimant_keeps_it(self, records: RecordHarness) -> None:
        north, south = await self.node(records), await self.node(records)

        kept = await north.claim("b1", keeper="north")
        lost = await south.claim("b1", keeper="south")

        assert (kept.keeper, lost.keeper) == ("north", "north")

    async def test_of_many_claimants_one_keeps_it_and_all_know_which(self, records: RecordHarness) -> None:
        nodes = [await self.node(records) for _ in range(4)]

        answers = await asyncio.gather(*(nodes[each % 4].claim("b1", keeper=f"n{each}") for each in range(12)))

        assert len({answer.keeper for answer in answers}) == 1

    async def test_a_keeper_that_asks_after_a_restart_keeps_it(self, records: RecordHarness) -> None:
        before = await self.node(records)
        await before.claim("b1", keeper="north")
        after = await self.node(records)

        standing = await after.standing("b1")

        assert standing is not None
        assert (standing.keeper, (await after.claim("b1", keeper="north")).keeper) == ("north", "north")

    async def test_what_nobody_claimed_is_nobodys(self, records: RecordHarness) -> None:
        node = await self.node(records)
        await node.claim("b1", keeper="north")

        assert await node.standing("b2") is None
        assert (await node.claim("b2", keeper="south")).keeper == "south"

    async def test_who_lost_the_answer_learns_whose_it_is(self, records: RecordHarness) -> None:
        store = await records.client(CUSTODY)
        north, south = self.over(store, records), await self.node(records)
        records.cut_after_write(store)

        await goes_unheard(north.claim("b1", keeper="north"))
        lost = await south.claim("b1", keeper="south")
        await records.mend(store)

        assert lost.keeper == "north"
        assert (await north.claim("b1", keeper="north")).keeper == "north"

    async def test_a_claim_that_arrives_late_takes_nothing_over(self, records: RecordHarness) -> None:
        store = await records.client(CUSTODY)
        north, south = self.over(store, records), await self.node(records)
        records.withhold(store)

        with pytest.raises(Unavailable):
            await north.claim("b1", keeper="north")
        kept = await south.claim("b1", keeper="south")
        await records.deliver(store)

        assert kept.keeper == "south"
        assert (await north.claim("b1", keeper="north")).keeper == "south"

    async def test_an_unreachable_store_makes_a_batch_nobodys_and_not_ones_own(self, records: RecordHarness) -> None:
        store = await records.client(CUSTODY)
        node = self.over(store, records)
        await node.claim("b1", keeper="north")
        await records.cut(store)

        with pytest.raises(Unavailable):
            await node.claim("b1", keeper="north")
        with pytest.raises(Unavailable):
            await node.standing("b1")

    async def test_custody_outlives_a_change_of_leader(self, records: RecordHarness) -> None:
        north, south = await self.node(records), await self.node(records)
        await north.claim("b1", keeper="north")

        await records.disturb()

        assert (await south.claim("b1", keeper="south")).keeper == "north"
