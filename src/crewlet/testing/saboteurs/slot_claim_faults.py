"""Saboteurs of delivery claims: who is first, for how long, and what an outage means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import ClassVar

from msgspec.structs import replace

from crewlet.base.clock import Clock
from crewlet.coordination import CLAIMS, DeliveryClaim, DeliveryClaims, RecordStore, Seen
from crewlet.coordination.records.stored import list_stored, remove_stored
from crewlet.testing.contracts.slot_claims import DeliveryClaimPromises

__all__ = ["CLAIM_FAULTS"]


class ClaimFault(DeliveryClaims):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class ClaimsAreTheNodes(ClaimFault):
    """What another node received is nobody's business."""

    caught_by = DeliveryClaimPromises.test_a_retry_that_comes_to_another_node_was_seen_before

    def __init__(self, store: RecordStore, clock: Clock) -> None:
        super().__init__(store, clock)
        self._known: set[tuple[str, str]] = set()

    async def claim(self, source: str, delivery_id: str, *, claimant: str, ttl_s: float) -> Seen:
        first = (source, delivery_id) not in self._known
        self._known.add((source, delivery_id))
        return Seen.FIRST if first else Seen.BEFORE


class TheProcessClaims(ClaimFault):
    """A claim is the process's, which wins its own again."""

    caught_by = DeliveryClaimPromises.test_a_retry_that_comes_to_the_same_node_was_seen_before

    async def claim(self, source: str, delivery_id: str, *, claimant: str, ttl_s: float) -> Seen:
        return await super().claim(source, delivery_id, claimant="the process", ttl_s=ttl_s)


class OneSourceForAll(ClaimFault):
    """Whose id it is does not matter."""

    caught_by = DeliveryClaimPromises.test_an_id_is_its_sources_own

    async def claim(self, source: str, delivery_id: str, *, claimant: str, ttl_s: float) -> Seen:
        return await super().claim("any", delivery_id, claimant=claimant, ttl_s=ttl_s)


class LapsesEarly(ClaimFault):
    """A claim lasts half as long as it says."""

    caught_by = DeliveryClaimPromises.test_a_claim_holds_until_its_deadline_by_the_next_claimants_clock

    async def claim(self, source: str, delivery_id: str, *, claimant: str, ttl_s: float) -> Seen:
        return await super().claim(source, delivery_id, claimant=claimant, ttl_s=ttl_s / 2)


class NeverLapses(ClaimFault):
    """A claim stands until the bucket forgets it."""

    caught_by = DeliveryClaimPromises.test_a_claim_lapses_at_its_deadline

    async def _claimed(self, wanted: DeliveryClaim) -> DeliveryClaim:
        return await super()._claimed(replace(wanted, claimed_at=datetime.min.replace(tzinfo=UTC)))


class EveryClaimIsShort(ClaimFault):
    """All claims last five minutes."""

    caught_by = DeliveryClaimPromises.test_a_longer_claim_in_the_same_bucket_holds_on

    async def claim(self, source: str, delivery_id: str, *, claimant: str, ttl_s: float) -> Seen:
        return await super().claim(source, delivery_id, claimant=claimant, ttl_s=min(ttl_s, 300.0))


class TheStoreJudges(ClaimFault):
    """A deadline is compared with the store's clock."""

    caught_by = DeliveryClaimPromises.test_the_stores_clock_decides_nothing

    async def _claimed(self, wanted: DeliveryClaim) -> DeliveryClaim:
        time = await self._store.time()
        return await super()._claimed(replace(wanted, claimed_at=time.latest))


class LongClaimsAreCut(ClaimFault):
    """A claim above the age is made for the age."""

    caught_by = DeliveryClaimPromises.test_a_claim_above_the_age_in_force_is_refused_naming_it

    async def claim(self, source: str, delivery_id: str, *, claimant: str, ttl_s: float) -> Seen:
        return await super().claim(source, delivery_id, claimant=claimant, ttl_s=min(ttl_s, CLAIMS.age_s or ttl_s))


class ChecksThenWrites(ClaimFault):
    """What is read and what is written is not compared."""

    caught_by = DeliveryClaimPromises.test_of_many_receptions_at_once_one_is_the_first

    async def claim(self, source: str, delivery_id: str, *, claimant: str, ttl_s: float) -> Seen:
        claims = await list_stored(self._store, DeliveryClaim, "delivery.>")
        await super().claim(source, delivery_id, claimant=claimant, ttl_s=ttl_s)
        return Seen.BEFORE if claims else Seen.FIRST


class TheUnknownIsSuppressed(ClaimFault):
    """What could not be asked was seen before."""

    caught_by = DeliveryClaimPromises.test_what_cannot_be_asked_suppresses_nothing

    async def claim(self, source: str, delivery_id: str, *, claimant: str, ttl_s: float) -> Seen:
        seen = await super().claim(source, delivery_id, claimant=claimant, ttl_s=ttl_s)
        return Seen.BEFORE if seen is Seen.UNKNOWN else seen


class AsksUnderAnotherName(ClaimFault):
    """Whoever asks again does so as somebody else."""

    caught_by = DeliveryClaimPromises.test_who_lost_the_answer_learns_that_the_claim_is_its_own
    _asked = 0

    async def claim(self, source: str, delivery_id: str, *, claimant: str, ttl_s: float) -> Seen:
        self._asked += 1
        return await super().claim(source, delivery_id, claimant=f"{claimant}{self._asked}", ttl_s=ttl_s)


class ReleasesNothing(ClaimFault):
    """A claim stays whatever became of its delivery."""

    caught_by = DeliveryClaimPromises.test_after_a_release_the_next_is_the_first_everywhere

    async def release(self, source: str, delivery_id: str, *, claimant: str) -> None:
        return


class ReleasesAnybodys(ClaimFault):
    """A release takes whatever claim stands."""

    caught_by = DeliveryClaimPromises.test_a_release_takes_nobody_elses_claim

    async def release(self, source: str, delivery_id: str, *, claimant: str) -> None:
        for claim in await list_stored(self._store, DeliveryClaim, "delivery.>"):
            await remove_stored(self._store, DeliveryClaim, claim.key, lambda _: True)


class ForgetsWhatItGaveUp(ClaimFault):
    """A release that could not be written is forgotten."""

    caught_by = DeliveryClaimPromises.test_what_could_not_be_released_is_over_for_who_tried

    async def release(self, source: str, delivery_id: str, *, claimant: str) -> None:
        await super().release(source, delivery_id, claimant=claimant)
        self._unreleased.clear()


CLAIM_FAULTS: tuple[type[ClaimFault], ...] = (
    ClaimsAreTheNodes,
    TheProcessClaims,
    OneSourceForAll,
    LapsesEarly,
    NeverLapses,
    EveryClaimIsShort,
    TheStoreJudges,
    LongClaimsAreCut,
    ChecksThenWrites,
    TheUnknownIsSuppressed,
    AsksUnderAnotherName,
    ReleasesNothing,
    ReleasesAnybodys,
    ForgetsWhatItGaveUp,
)
