"""Saboteurs of onboarding marks: who is about a seat, and what stays known of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from typing import ClassVar

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.coordination import OnboardingClaim, OnboardingMark, Onboardings, RecordStore
from crewlet.coordination.records.stored import put_stored, remove_stored
from crewlet.testing.contracts.slot_onboardings import OnboardingPromises

__all__ = ["ONBOARDING_FAULTS"]


class OnboardingFault(Onboardings):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]

    async def put(self, mark: OnboardingMark) -> OnboardingMark:
        """The mark stands, whatever stood."""
        return (await put_stored(self._store, f"onboarding.{mark.agent_id}", mark)).record

    async def remove(self, agent_id: str) -> None:
        """Nothing stands."""
        await remove_stored(self._store, OnboardingMark, f"onboarding.{agent_id}", lambda _: True)


class MarksAreTheNodes(OnboardingFault):
    """What another node has marked is nobody's business."""

    caught_by = OnboardingPromises.test_every_node_reads_at_which_place_a_seat_was_onboarded

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        super().__init__(store, clock)
        self._mine: dict[str, OnboardingMark] = {}

    async def mark(self, agent_id: str, chain_hash: str, *, claimant: str) -> OnboardingMark:
        self._mine[agent_id] = await super().mark(agent_id, chain_hash, claimant=claimant)
        return self._mine[agent_id]

    async def get(self, agent_id: str) -> OnboardingMark | None:
        await super().get(agent_id)
        return self._mine.get(agent_id)


class EveryClaimIsWon(OnboardingFault):
    """Whoever asks is told that it is the one."""

    caught_by = OnboardingPromises.test_of_many_claims_at_once_one_is_won

    async def claim(
        self, agent_id: str, chain_hash: str, *, claimant: str, given_up: Collection[str] = ()
    ) -> OnboardingClaim:
        claim = await super().claim(agent_id, chain_hash, claimant=claimant, given_up=given_up)
        return OnboardingClaim.CLAIMED if claim is OnboardingClaim.TAKEN else claim


class LapsesEarly(OnboardingFault):
    """A claim ends long before it says."""

    caught_by = OnboardingPromises.test_a_claim_is_taken_by_nobody_else_before_its_end

    async def claim(
        self, agent_id: str, chain_hash: str, *, claimant: str, given_up: Collection[str] = ()
    ) -> OnboardingClaim:
        standing, half = await self.get(agent_id), timedelta(seconds=limits.ONBOARDING_CLAIM_S / 2)
        if standing is not None and standing.claimed_until is not None:
            is_over = standing.claimed_until - half <= self._clock.now()
            given_up = (*given_up, standing.claimed_by) if is_over else given_up
        return await super().claim(agent_id, chain_hash, claimant=claimant, given_up=given_up)


class NeverLapses(OnboardingFault):
    """A claim stands until it is given back."""

    caught_by = OnboardingPromises.test_a_claim_that_lapsed_can_be_taken

    async def claim(
        self, agent_id: str, chain_hash: str, *, claimant: str, given_up: Collection[str] = ()
    ) -> OnboardingClaim:
        standing = await self.get(agent_id)
        if standing is not None and standing.claimed_by not in ("", claimant, *given_up):
            return OnboardingClaim.TAKEN
        return await super().claim(agent_id, chain_hash, claimant=claimant, given_up=given_up)


class AClaimUnheardIsLost(OnboardingFault):
    """Who claimed and never heard of it waits for its own claim."""

    caught_by = OnboardingPromises.test_who_claimed_and_never_heard_of_it_is_told_that_it_did

    async def claim(
        self, agent_id: str, chain_hash: str, *, claimant: str, given_up: Collection[str] = ()
    ) -> OnboardingClaim:
        standing = await self.get(agent_id)
        if standing is not None and standing.claimed_by == claimant:
            return OnboardingClaim.TAKEN
        return await super().claim(agent_id, chain_hash, claimant=claimant, given_up=given_up)


class WhoGaveUpIsWaitedFor(OnboardingFault):
    """What is known to be given up is not asked about."""

    caught_by = OnboardingPromises.test_a_claim_that_is_known_to_be_given_up_is_over

    async def claim(
        self, agent_id: str, chain_hash: str, *, claimant: str, given_up: Collection[str] = ()
    ) -> OnboardingClaim:
        return await super().claim(agent_id, chain_hash, claimant=claimant)


class GivesBackTheMarkToo(OnboardingFault):
    """Whoever gives a claim back takes away all that stands."""

    caught_by = OnboardingPromises.test_a_claim_is_given_back_by_its_turn_alone_and_the_mark_stays

    async def give_back(self, agent_id: str, *, claimant: str) -> None:
        await self.remove(agent_id)


class OnceIsForEver(OnboardingFault):
    """A seat that was onboarded anywhere is onboarded everywhere."""

    caught_by = OnboardingPromises.test_another_place_is_due_again_until_it_is_marked

    async def claim(
        self, agent_id: str, chain_hash: str, *, claimant: str, given_up: Collection[str] = ()
    ) -> OnboardingClaim:
        standing = await self.get(agent_id)
        if standing is not None and standing.chain_hash:
            return OnboardingClaim.ONBOARDED
        return await super().claim(agent_id, chain_hash, claimant=claimant, given_up=given_up)


class MarkedEachTimeAnew(OnboardingFault):
    """A mark that stands is made again."""

    caught_by = OnboardingPromises.test_a_mark_is_made_once_and_ends_no_other_turns_claim

    async def mark(self, agent_id: str, chain_hash: str, *, claimant: str) -> OnboardingMark:
        return await self.put(OnboardingMark(agent_id=agent_id, chain_hash=chain_hash, marked_at=self._clock.now()))


class NewOnboardingFieldsAreLost(OnboardingFault):
    """A mark that is made has what this build knows."""

    caught_by = OnboardingPromises.test_what_a_newer_build_wrote_stays

    async def mark(self, agent_id: str, chain_hash: str, *, claimant: str) -> OnboardingMark:
        await self.remove(agent_id)
        return await super().mark(agent_id, chain_hash, claimant=claimant)


class TheUnknownIsDue(OnboardingFault):
    """A seat whose mark cannot be read was never onboarded."""

    caught_by = OnboardingPromises.test_a_mark_that_cannot_be_read_is_neither_there_nor_missing

    async def claim(
        self, agent_id: str, chain_hash: str, *, claimant: str, given_up: Collection[str] = ()
    ) -> OnboardingClaim:
        try:
            return await super().claim(agent_id, chain_hash, claimant=claimant, given_up=given_up)
        except Unavailable:
            return OnboardingClaim.CLAIMED


ONBOARDING_FAULTS: tuple[type[OnboardingFault], ...] = (
    MarksAreTheNodes,
    EveryClaimIsWon,
    LapsesEarly,
    NeverLapses,
    AClaimUnheardIsLost,
    WhoGaveUpIsWaitedFor,
    GivesBackTheMarkToo,
    OnceIsForEver,
    MarkedEachTimeAnew,
    NewOnboardingFieldsAreLost,
    TheUnknownIsDue,
)
"""Each takes the place of the marks in their suite."""
