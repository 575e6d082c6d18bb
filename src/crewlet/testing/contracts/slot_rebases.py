"""Promises about rebases: every attempt at old work makes its writes at one instant."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import ClassVar

import pytest

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import REBASES, Rebases, RecordStore, WorkInstant
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness, ShiftedClock
from crewlet.testing.contracts.slot_unheard import goes_unheard

__all__ = ["RebasePromises"]

DAY_S = 24 * 3600.0
HORIZON = timedelta(seconds=limits.REBASE_HORIZON_S)


class RebasePromises(Contract):
    """Rebases: minted by the first attempt past the horizon, inherited by the later ones, closed when out of reach."""

    kind: ClassVar[type[Rebases]] = Rebases

    def over(self, store: RecordStore, records: RecordHarness, *, shift_s: float = 0.0) -> Rebases:
        """Rebases as a node reads them whose clock is so far ahead of the others'."""
        return self.kind(store, ShiftedClock(records.clock, shift_s))

    async def node(self, records: RecordHarness, *, shift_s: float = 0.0) -> Rebases:
        """Those of a node of its own."""
        return self.over(await records.client(REBASES), records, shift_s=shift_s)

    @pytest.mark.spec("C-075")
    async def test_young_work_keeps_its_beginning_and_leaves_no_record(self, records: RecordHarness) -> None:
        store = await records.client(REBASES)
        node, began_at = self.over(store, records), records.clock.now() - timedelta(days=28)

        instant = await node.instant("w1", began_at=began_at)

        assert instant == WorkInstant(began_at, is_rebased=False)
        assert await store.list("work.>") == []

    @pytest.mark.spec("C-075", "C-076")
    async def test_old_work_is_rebased_once_and_every_later_attempt_inherits(self, records: RecordHarness) -> None:
        store = await records.client(REBASES)
        first, later = self.over(store, records), await self.node(records, shift_s=3 * DAY_S)
        began_at = records.clock.now() - timedelta(days=30)

        before = records.clock.now()
        minted = await first.instant("w1", began_at=began_at)
        after = records.clock.now()
        inherited = [await node.instant("w1", began_at=began_at) for node in (later, first)]

        assert before <= minted.at <= after
        assert minted.is_rebased
        assert inherited == [minted, minted]
        assert len(await store.list("work.>")) == 1

    @pytest.mark.spec("C-076")
    async def test_attempts_at_once_share_one_instant(self, records: RecordHarness) -> None:
        nodes = [await self.node(records, shift_s=each) for each in range(4)]
        began_at = records.clock.now() - timedelta(days=40)

        instants = await asyncio.gather(*(nodes[each % 4].instant("w1", began_at=began_at) for each in range(12)))

        assert len(set(instants)) == 1

    async def test_each_unit_of_work_has_an_instant_of_its_own(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records, shift_s=60)
        began_at = records.clock.now() - timedelta(days=40)

        assert await here.instant("w1", began_at=began_at) != await there.instant("w2", began_at=began_at)

    @pytest.mark.spec("C-133")
    async def test_an_instant_is_inherited_within_the_horizon_of_the_attempts_own_clock(
        self, records: RecordHarness
    ) -> None:
        first, inside = await self.node(records), await self.node(records, shift_s=limits.REBASE_HORIZON_S - 600)
        began_at = records.clock.now() - timedelta(days=40)
        minted = await first.instant("w1", began_at=began_at)

        assert await inside.instant("w1", began_at=began_at) == minted

    @pytest.mark.spec("C-133")
    async def test_an_instant_past_the_horizon_is_minted_anew(self, records: RecordHarness) -> None:
        shift_s = limits.REBASE_HORIZON_S + 600
        first, outside = await self.node(records), await self.node(records, shift_s=shift_s)
        began_at = records.clock.now() - timedelta(days=40)
        minted = await first.instant("w1", began_at=began_at)

        anew = await outside.instant("w1", began_at=began_at)
        inherited = await outside.instant("w1", began_at=began_at)

        assert anew.at - minted.at >= timedelta(seconds=shift_s)
        assert inherited == anew

    async def test_a_node_whose_clock_is_behind_inherits_all_the_same(self, records: RecordHarness) -> None:
        ahead, behind = await self.node(records), await self.node(records, shift_s=-60)
        began_at = records.clock.now() - HORIZON - timedelta(seconds=30)

        minted = await ahead.instant("w1", began_at=began_at)

        assert minted.is_rebased
        assert await behind.instant("w1", began_at=began_at) == minted

    async def test_who_lost_the_answer_inherits_what_it_minted(self, records: RecordHarness) -> None:
        store = await records.client(REBASES)
        node, successor = self.over(store, records), await self.node(records, shift_s=60)
        began_at = records.clock.now() - timedelta(days=40)
        records.cut_after_write(store)

        await goes_unheard(node.instant("w1", began_at=began_at))
        inherited = await successor.instant("w1", began_at=began_at)
        await records.mend(store)

        assert await node.instant("w1", began_at=began_at) == inherited
        assert inherited.at < records.clock.now() + timedelta(seconds=30)

    async def test_old_work_waits_for_an_unreachable_store_and_young_work_does_not(
        self, records: RecordHarness
    ) -> None:
        store = await records.client(REBASES)
        node, now = self.over(store, records), records.clock.now()
        await records.cut(store)

        with pytest.raises(Unavailable):
            await node.instant("w1", began_at=now - timedelta(days=40))
        assert await node.instant("w2", began_at=now) == WorkInstant(now, is_rebased=False)

    async def test_an_instant_outlives_a_change_of_leader(self, records: RecordHarness) -> None:
        first, later = await self.node(records), await self.node(records, shift_s=60)
        began_at = records.clock.now() - timedelta(days=40)
        minted = await first.instant("w1", began_at=began_at)

        await records.disturb()

        assert await later.instant("w1", began_at=began_at) == minted
