"""Promises about onboarding marks: one turn at a time is about a seat, and what it was onboarded at stays known."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import POSITIONS, OnboardingClaim, Onboardings, RecordStore
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness, ShiftedClock
from crewlet.testing.contracts.slot_outside import add_fields, damage, fields, has_no_answer
from crewlet.testing.contracts.slot_unheard import goes_unheard

__all__ = ["OnboardingPromises"]

AGENT = "0b9f6ad2-0000-5000-8000-000000000001"
KEY = f"onboarding.{AGENT}"
PLACE, ELSEWHERE = "place-1", "place-2"


class OnboardingPromises(Contract):
    """What is true of one seat's mark, and of the claim on it."""

    kind: ClassVar[type[Onboardings]] = Onboardings

    async def test_every_node_reads_at_which_place_a_seat_was_onboarded(self, records: RecordHarness) -> None:
        here, there = await self._client(records), await self._client(records)
        await here.claim(AGENT, PLACE, claimant="t1")
        marked = await here.mark(AGENT, PLACE, claimant="t1")
        await records.disturb()

        assert (marked.chain_hash, marked.claimed_by, marked.claimed_until) == (PLACE, "", None)
        assert await there.get(AGENT) == marked
        assert await there.get("somebody-else") is None
        assert await there.claim(AGENT, PLACE, claimant="t2") is OnboardingClaim.ONBOARDED

    async def test_no_clock_takes_a_mark(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        marks = self._of(records, store)
        marked = await marks.mark(AGENT, PLACE, claimant="t1")
        await records.advance(records.quiet_s)

        assert store.age_s is None
        assert await marks.get(AGENT) == marked

    async def test_of_many_claims_at_once_one_is_won(self, records: RecordHarness) -> None:
        clients = [await self._client(records) for _ in range(3)]
        await records.disturb()

        asked = await asyncio.gather(
            *(each.claim(AGENT, PLACE, claimant=f"t{number}") for number, each in enumerate(clients))
        )

        assert sorted(each.name for each in asked) == ["CLAIMED", "TAKEN", "TAKEN"]

    async def test_a_claim_is_taken_by_nobody_else_before_its_end(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        await self._of(records, store).claim(AGENT, PLACE, claimant="t1")
        later = self._of(records, store, shift_s=limits.ONBOARDING_CLAIM_S - 60)

        assert await later.claim(AGENT, PLACE, claimant="t2") is OnboardingClaim.TAKEN
        assert await later.claim(AGENT, ELSEWHERE, claimant="t2") is OnboardingClaim.TAKEN

    async def test_a_claim_that_lapsed_can_be_taken(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        await self._of(records, store).claim(AGENT, PLACE, claimant="t1")
        later = self._of(records, store, shift_s=limits.ONBOARDING_CLAIM_S + 60)

        assert await later.claim(AGENT, PLACE, claimant="t2") is OnboardingClaim.CLAIMED
        assert await self._of(records, store).claim(AGENT, PLACE, claimant="t1") is OnboardingClaim.TAKEN

    async def test_who_claimed_and_never_heard_of_it_is_told_that_it_did(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        marks = self._of(records, store)
        records.cut_after_write(store)
        await goes_unheard(marks.claim(AGENT, PLACE, claimant="t1"))
        await records.mend(store)

        assert await marks.claim(AGENT, PLACE, claimant="t1") is OnboardingClaim.CLAIMED

    async def test_a_claim_that_is_known_to_be_given_up_is_over(self, records: RecordHarness) -> None:
        marks = await self._client(records)
        await marks.claim(AGENT, PLACE, claimant="t1")

        assert await marks.claim(AGENT, PLACE, claimant="t2", given_up=("t0",)) is OnboardingClaim.TAKEN
        assert await marks.claim(AGENT, PLACE, claimant="t2", given_up=("t0", "t1")) is OnboardingClaim.CLAIMED

    async def test_a_claim_is_given_back_by_its_turn_alone_and_the_mark_stays(self, records: RecordHarness) -> None:
        marks = await self._client(records)
        marked = await marks.mark(AGENT, PLACE, claimant="t1")
        await marks.claim(AGENT, ELSEWHERE, claimant="t2")

        await marks.give_back(AGENT, claimant="t1")
        assert await marks.claim(AGENT, ELSEWHERE, claimant="t3") is OnboardingClaim.TAKEN
        await marks.give_back(AGENT, claimant="t2")
        await marks.give_back("somebody-else", claimant="t2")

        assert await marks.get(AGENT) == marked
        assert await marks.get("somebody-else") is None
        assert await marks.claim(AGENT, ELSEWHERE, claimant="t3") is OnboardingClaim.CLAIMED

    async def test_another_place_is_due_again_until_it_is_marked(self, records: RecordHarness) -> None:
        marks = await self._client(records)
        await marks.mark(AGENT, PLACE, claimant="t1")

        assert await marks.claim(AGENT, ELSEWHERE, claimant="t2") is OnboardingClaim.CLAIMED
        assert await marks.claim(AGENT, PLACE, claimant="t3") is OnboardingClaim.ONBOARDED
        assert (await marks.mark(AGENT, ELSEWHERE, claimant="t2")).chain_hash == ELSEWHERE
        assert await marks.claim(AGENT, PLACE, claimant="t3") is OnboardingClaim.CLAIMED

    async def test_a_mark_is_made_once_and_ends_no_other_turns_claim(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        first = await self._of(records, store).mark(AGENT, PLACE, claimant="t1")
        later = self._of(records, store, shift_s=3600)

        assert await later.mark(AGENT, PLACE, claimant="t1") == first
        await later.claim(AGENT, ELSEWHERE, claimant="t2")
        assert (await later.mark(AGENT, PLACE, claimant="t1")).claimed_by == "t2"

    async def test_what_a_newer_build_wrote_stays(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        marks = self._of(records, store)
        await marks.mark(AGENT, PLACE, claimant="t1")
        await add_fields(store, KEY, mood="calm")

        await marks.claim(AGENT, ELSEWHERE, claimant="t2")
        await marks.mark(AGENT, ELSEWHERE, claimant="t2")

        assert (await fields(store, KEY))["mood"] == "calm"

    async def test_a_mark_that_cannot_be_read_is_neither_there_nor_missing(self, records: RecordHarness) -> None:
        store = await records.client(POSITIONS)
        marks = self._of(records, store)
        await marks.mark(AGENT, PLACE, claimant="t1")

        await has_no_answer(
            records,
            store,
            lambda: marks.claim(AGENT, PLACE, claimant="t2"),
            lambda: marks.mark(AGENT, ELSEWHERE, claimant="t2"),
            lambda: marks.give_back(AGENT, claimant="t2"),
            lambda: marks.get(AGENT),
        )
        await damage(store, KEY)

        for call in (
            marks.claim(AGENT, PLACE, claimant="t2"),
            marks.mark(AGENT, PLACE, claimant="t2"),
            marks.give_back(AGENT, claimant="t2"),
            marks.get(AGENT),
        ):
            with pytest.raises(Unavailable):
                await call

    async def _client(self, records: RecordHarness) -> Onboardings:
        return self._of(records, await records.client(POSITIONS))

    def _of(self, records: RecordHarness, store: RecordStore, *, shift_s: float = 0.0) -> Onboardings:
        return self.kind(store, ShiftedClock(records.clock, shift_s))
