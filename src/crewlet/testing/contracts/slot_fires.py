"""Promises about scheduled dispatches: each is claimed once, wherever the scheduler runs."""

from __future__ import annotations

import asyncio
from typing import ClassVar, NamedTuple

import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import FIRES, Fires, RecordStore
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.slot_unheard import goes_unheard

__all__ = ["FirePromises"]


class _Dispatch(NamedTuple):
    owner: str = "role:ceo"
    schedule: str = "standup"
    instant: str = "20300102T0900"
    target: str = "ceo"


STANDUP = _Dispatch()


class FirePromises(Contract):
    """Fires: created once, never changed, known to whoever schedules next."""

    kind: ClassVar[type[Fires]] = Fires

    def over(self, store: RecordStore, records: RecordHarness) -> Fires:
        """The fires as a node reads them."""
        return self.kind(store, records.clock)

    async def node(self, records: RecordHarness) -> Fires:
        """Those of a node of its own."""
        return self.over(await records.client(FIRES), records)

    @pytest.mark.spec("C-074")
    async def test_a_successor_finds_the_claim(self, records: RecordHarness) -> None:
        first, successor = await self.node(records), await self.node(records)

        won = await first.claim(*STANDUP, claimant="a")
        again = await successor.claim(*STANDUP, claimant="b")
        standing = await successor.standing(*STANDUP)

        assert (won, again) == (True, False)
        assert standing is not None
        assert (standing.claimant, standing.claimed_at.tzinfo is not None) == ("a", True)

    async def test_another_attempt_of_the_same_process_has_lost(self, records: RecordHarness) -> None:
        node = await self.node(records)

        assert [await node.claim(*STANDUP, claimant=each) for each in ("a", "b")] == [True, False]

    async def test_an_attempt_that_asks_again_has_won(self, records: RecordHarness) -> None:
        node = await self.node(records)

        assert [await node.claim(*STANDUP, claimant="a") for _ in range(2)] == [True, True]

    async def test_each_part_tells_dispatches_apart(self, records: RecordHarness) -> None:
        node = await self.node(records)
        await node.claim(*STANDUP, claimant="a")
        others = [
            STANDUP._replace(owner="unit:ceo"),
            STANDUP._replace(schedule="review"),
            STANDUP._replace(instant="20300103T0900"),
            STANDUP._replace(target="cto"),
        ]

        assert all([await node.claim(*each, claimant="b") for each in others])

    async def test_of_many_attempts_one_wins(self, records: RecordHarness) -> None:
        nodes = [await self.node(records) for _ in range(4)]

        won = await asyncio.gather(*(nodes[each % 4].claim(*STANDUP, claimant=f"c{each}") for each in range(12)))

        assert sum(won) == 1

    async def test_who_lost_the_answer_learns_that_it_has_won(self, records: RecordHarness) -> None:
        store = await records.client(FIRES)
        node, successor = self.over(store, records), await self.node(records)
        records.cut_after_write(store)

        await goes_unheard(node.claim(*STANDUP, claimant="a"))
        await records.mend(store)

        assert not await successor.claim(*STANDUP, claimant="b")
        assert await node.claim(*STANDUP, claimant="a")

    async def test_a_claim_that_arrives_late_has_lost(self, records: RecordHarness) -> None:
        store = await records.client(FIRES)
        node, successor = self.over(store, records), await self.node(records)
        records.withhold(store)

        with pytest.raises(Unavailable):
            await node.claim(*STANDUP, claimant="a")
        won = await successor.claim(*STANDUP, claimant="b")
        await records.deliver(store)

        assert won
        assert not await node.claim(*STANDUP, claimant="a")

    async def test_an_unreachable_store_is_neither_won_nor_lost(self, records: RecordHarness) -> None:
        store = await records.client(FIRES)
        node = self.over(store, records)
        await records.cut(store)

        with pytest.raises(Unavailable):
            await node.claim(*STANDUP, claimant="a")
        with pytest.raises(Unavailable):
            await node.standing(*STANDUP)

    async def test_a_claim_outlives_a_change_of_leader(self, records: RecordHarness) -> None:
        first, successor = await self.node(records), await self.node(records)
        await first.claim(*STANDUP, claimant="a")

        await records.disturb()

        assert not await successor.claim(*STANDUP, claimant="b")
