"""Promises about delivery claims: one reception of a delivery goes on, for as long as its claim says."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import ClassVar

import pytest

from crewlet.coordination import CLAIMS, ClaimTooLong, DeliveryClaims, RecordStore, Seen
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import SKEW_S, RecordHarness, ShiftedClock

__all__ = ["DeliveryClaimPromises"]

MINUTE_S = 60.0


class DeliveryClaimPromises(Contract):
    """Delivery claims: fleet-wide, lapsing by their own deadline, open when the store is out of reach."""

    kind: ClassVar[type[DeliveryClaims]] = DeliveryClaims

    def over(self, store: RecordStore, records: RecordHarness, *, shift_s: float = 0.0) -> DeliveryClaims:
        """The claims as a node reads them whose clock is so far ahead of the others'."""
        return self.kind(store, ShiftedClock(records.clock, shift_s))

    async def node(self, records: RecordHarness, *, shift_s: float = 0.0) -> DeliveryClaims:
        """Those of a node of its own."""
        return self.over(await records.client(CLAIMS), records, shift_s=shift_s)

    @pytest.mark.spec("C-066")
    async def test_a_retry_that_comes_to_another_node_was_seen_before(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)

        first = await here.claim("github", "d1", claimant="a", ttl_s=5 * MINUTE_S)
        retry = await there.claim("github", "d1", claimant="b", ttl_s=5 * MINUTE_S)

        assert (first, retry) == (Seen.FIRST, Seen.BEFORE)
        assert retry.suppresses
        assert not first.suppresses

    async def test_a_retry_that_comes_to_the_same_node_was_seen_before(self, records: RecordHarness) -> None:
        node = await self.node(records)

        answers = [await node.claim("github", "d1", claimant=each, ttl_s=5 * MINUTE_S) for each in ("a", "b")]

        assert answers == [Seen.FIRST, Seen.BEFORE]

    async def test_an_id_is_its_sources_own(self, records: RecordHarness) -> None:
        node = await self.node(records)
        await node.claim("github", "d1", claimant="a", ttl_s=5 * MINUTE_S)

        others = [("gitlab", "d1"), ("github", "d2"), ("github", "d1 "), ("git", "hub.d1")]
        answers = [await node.claim(*each, claimant="b", ttl_s=5 * MINUTE_S) for each in others]

        assert answers == [Seen.FIRST] * 4

    @pytest.mark.spec("C-109")
    async def test_a_claim_holds_until_its_deadline_by_the_next_claimants_clock(self, records: RecordHarness) -> None:
        now, later = await self.node(records), await self.node(records, shift_s=4 * MINUTE_S)
        await now.claim("github", "d1", claimant="a", ttl_s=5 * MINUTE_S)

        assert await later.claim("github", "d1", claimant="b", ttl_s=5 * MINUTE_S) is Seen.BEFORE

    @pytest.mark.spec("C-109")
    async def test_a_claim_lapses_at_its_deadline(self, records: RecordHarness) -> None:
        now, later = await self.node(records), await self.node(records, shift_s=5 * MINUTE_S)
        await now.claim("github", "d1", claimant="a", ttl_s=5 * MINUTE_S)

        anew = await later.claim("github", "d1", claimant="b", ttl_s=5 * MINUTE_S)
        retry = await later.claim("github", "d1", claimant="c", ttl_s=5 * MINUTE_S)

        assert (anew, retry) == (Seen.FIRST, Seen.BEFORE)

    @pytest.mark.spec("C-109")
    async def test_a_longer_claim_in_the_same_bucket_holds_on(self, records: RecordHarness) -> None:
        now, later = await self.node(records), await self.node(records, shift_s=6 * MINUTE_S)
        await now.claim("github", "d1", claimant="a", ttl_s=5 * MINUTE_S)
        await now.claim("mattermost", "p1", claimant="a", ttl_s=30 * MINUTE_S)

        short = await later.claim("github", "d1", claimant="b", ttl_s=5 * MINUTE_S)
        long = await later.claim("mattermost", "p1", claimant="b", ttl_s=30 * MINUTE_S)

        assert (short, long) == (Seen.FIRST, Seen.BEFORE)

    @pytest.mark.spec("C-109")
    async def test_the_stores_clock_decides_nothing(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        await here.claim("github", "d1", claimant="a", ttl_s=SKEW_S - 30)

        assert await there.claim("github", "d1", claimant="b", ttl_s=SKEW_S - 30) is Seen.BEFORE

    async def test_of_many_receptions_at_once_one_is_the_first(self, records: RecordHarness) -> None:
        nodes = [await self.node(records) for _ in range(4)]

        answers = await asyncio.gather(
            *(nodes[each % 4].claim("github", "d1", claimant=f"c{each}", ttl_s=MINUTE_S) for each in range(12))
        )

        assert sorted(answer.value for answer in answers) == ["before"] * 11 + ["first"]

    async def test_of_many_receptions_after_a_lapse_one_is_the_first(self, records: RecordHarness) -> None:
        now, later = await self.node(records), [await self.node(records, shift_s=2 * MINUTE_S) for _ in range(4)]
        await now.claim("github", "d1", claimant="a", ttl_s=MINUTE_S)

        answers = await asyncio.gather(
            *(later[each % 4].claim("github", "d1", claimant=f"c{each}", ttl_s=MINUTE_S) for each in range(12))
        )

        assert sorted(answer.value for answer in answers) == ["before"] * 11 + ["first"]

    @pytest.mark.spec("C-125")
    async def test_a_claim_above_the_age_in_force_is_refused_naming_it(self, records: RecordHarness) -> None:
        node = await self.node(records)

        with pytest.raises(ClaimTooLong, match="1800 s") as caught:
            await node.claim("mattermost", "p1", claimant="a", ttl_s=31 * MINUTE_S)

        assert (caught.value.ttl_s, caught.value.ceiling_s) == (31 * MINUTE_S, 30 * MINUTE_S)
        assert await node.claim("mattermost", "p1", claimant="b", ttl_s=30 * MINUTE_S) is Seen.FIRST

    @pytest.mark.spec("C-125")
    async def test_the_age_in_force_is_the_buckets_and_not_the_tables(self, records: RecordHarness) -> None:
        await records.client(replace(CLAIMS, age_s=10 * MINUTE_S))
        late = self.over(await records.client(CLAIMS), records)

        with pytest.raises(ClaimTooLong, match="600 s"):
            await late.claim("mattermost", "p1", claimant="a", ttl_s=30 * MINUTE_S)

    @pytest.mark.spec("C-007")
    async def test_what_cannot_be_asked_suppresses_nothing(self, records: RecordHarness) -> None:
        store = await records.client(CLAIMS)
        node = self.over(store, records)
        await node.claim("github", "d1", claimant="a", ttl_s=5 * MINUTE_S)
        await records.cut(store)

        answer = await node.claim("github", "d1", claimant="b", ttl_s=5 * MINUTE_S)

        assert answer is Seen.UNKNOWN
        assert not answer.suppresses

    async def test_who_lost_the_answer_learns_that_the_claim_is_its_own(self, records: RecordHarness) -> None:
        store = await records.client(CLAIMS)
        node = self.over(store, records)
        records.cut_after_write(store)

        unheard = await node.claim("github", "d1", claimant="a", ttl_s=5 * MINUTE_S)
        await records.mend(store)
        again = await node.claim("github", "d1", claimant="a", ttl_s=5 * MINUTE_S)
        retry = await node.claim("github", "d1", claimant="b", ttl_s=5 * MINUTE_S)

        assert (unheard, again, retry) == (Seen.UNKNOWN, Seen.FIRST, Seen.BEFORE)

    async def test_a_claim_that_arrives_late_takes_nothing_over(self, records: RecordHarness) -> None:
        store = await records.client(CLAIMS)
        slow, quick = self.over(store, records), await self.node(records)
        records.withhold(store)

        unheard = await slow.claim("github", "d1", claimant="a", ttl_s=5 * MINUTE_S)
        first = await quick.claim("github", "d1", claimant="b", ttl_s=5 * MINUTE_S)
        await records.deliver(store)

        assert (unheard, first) == (Seen.UNKNOWN, Seen.FIRST)
        assert await quick.claim("github", "d1", claimant="b", ttl_s=5 * MINUTE_S) is Seen.FIRST

    async def test_after_a_release_the_next_is_the_first_everywhere(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        await here.claim("github", "d1", claimant="a", ttl_s=5 * MINUTE_S)

        await here.release("github", "d1", claimant="a")

        assert await there.claim("github", "d1", claimant="b", ttl_s=5 * MINUTE_S) is Seen.FIRST

    async def test_a_release_takes_nobody_elses_claim(self, records: RecordHarness) -> None:
        now, later = await self.node(records), await self.node(records, shift_s=2 * MINUTE_S)
        await now.claim("github", "d1", claimant="a", ttl_s=MINUTE_S)
        await later.claim("github", "d1", claimant="b", ttl_s=30 * MINUTE_S)

        await now.release("github", "d1", claimant="a")

        assert await later.claim("github", "d1", claimant="c", ttl_s=MINUTE_S) is Seen.BEFORE

    async def test_what_could_not_be_released_is_over_for_who_tried(self, records: RecordHarness) -> None:
        store = await records.client(CLAIMS)
        here, there = self.over(store, records), await self.node(records)
        await here.claim("github", "d1", claimant="a", ttl_s=5 * MINUTE_S)
        await records.cut(store)
        await here.release("github", "d1", claimant="a")
        await records.mend(store)

        elsewhere = await there.claim("github", "d1", claimant="b", ttl_s=5 * MINUTE_S)
        retry = await here.claim("github", "d1", claimant="c", ttl_s=5 * MINUTE_S)
        another = await here.claim("github", "d1", claimant="d", ttl_s=5 * MINUTE_S)

        assert (elsewhere, retry, another) == (Seen.BEFORE, Seen.FIRST, Seen.BEFORE)

    async def test_a_claim_outlives_a_change_of_leader(self, records: RecordHarness) -> None:
        here, there = await self.node(records), await self.node(records)
        await here.claim("github", "d1", claimant="a", ttl_s=5 * MINUTE_S)

        await records.disturb()

        assert await there.claim("github", "d1", claimant="b", ttl_s=5 * MINUTE_S) is Seen.BEFORE
