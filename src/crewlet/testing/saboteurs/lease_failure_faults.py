"""Saboteurs of claims and releases that fail part way."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import ClaimRefused, Hint, Lease, RefusalRule
from crewlet.coordination.lease_names import lease_key
from crewlet.coordination.lease_record import LeaseRecord
from crewlet.coordination.records.codec import encode_record
from crewlet.testing.contracts.lease_failures import FailedClaims, FailedReleases, StoppedClaims
from crewlet.testing.saboteurs.lease_saboteur import LeaseSaboteur
from crewlet.testing.saboteurs.lease_tenure_faults import Claimed, ClaimFault, Data, RenewalFault

__all__ = ["LEASE_FAILURE_FAULTS"]

_NO_TIME_S = 0.04


class FailingFault(LeaseSaboteur):
    """A saboteur of what comes after a claim that failed."""

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        try:
            return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)
        except BaseException:
            await self.failed(resource, owner, ttl_s)
            raise

    async def failed(self, resource: str, owner: str, ttl_s: float) -> None:
        """What is done then."""


class ClaimsTwice(ClaimFault):
    """Every claim is made twice."""

    caught_by = FailedClaims.test_a_tenure_is_three_writes

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        first = await self.twin.claim(resource, owner=owner, ttl_s=ttl_s)
        if isinstance(first, Lease):
            await self.twin.release(first)
        return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)


class TakesSilenceForFailure(LeaseSaboteur):
    """What was not answered at once has failed."""

    caught_by = FailedClaims.test_a_claim_that_lost_the_answer_to_a_write_is_granted_all_the_same

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        began_s = self.now_s
        answer = await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)
        if self.now_s - began_s > _NO_TIME_S:
            raise Unavailable("it took too long")
        return answer


class UnheardIsLost(TakesSilenceForFailure):
    """A tenure whose answer came late is nobody's."""

    caught_by = FailedClaims.test_a_tenure_whose_answer_came_late_is_its_claimants


class GivesNothingBack(FailingFault):
    """A claim that failed stays in the way."""

    caught_by = FailedClaims.test_a_claim_whose_counter_is_out_of_reach_gives_its_record_back_at_once

    async def failed(self, resource: str, owner: str, ttl_s: float) -> None:
        said = LeaseRecord(resource=resource, owner=owner, ttl_s=ttl_s, protocol=4)
        with suppress(Unavailable, Conflict):
            await self.store_of(resource).create(lease_key(resource), encode_record(said))


class LateWritesAreInTheWay(GivesNothingBack):
    """As before, where a write comes late."""

    caught_by = FailedClaims.test_a_write_that_arrives_after_its_claim_gave_up_changes_nothing


class GivenUpIsInTheWay(GivesNothingBack):
    """As before, where the caller gave up."""

    caught_by = StoppedClaims.test_given_up_anywhere_a_seat_is_claimable_at_once_unless_it_was_had


class ClaimingIsFree(LeaseSaboteur):
    """A claim that has no epoch yet holds nothing."""

    caught_by = FailedClaims.test_a_first_write_that_arrives_after_its_claim_gave_up_is_held_until_it_lapses

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        holder = await self.twin.holder(resource)
        if holder is not None and not holder.epoch:
            await self.wipe(resource)
        return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)


class FailedTenuresAreFree(LeaseSaboteur):
    """What a claim that failed left behind is anybody's."""

    caught_by = FailedClaims.test_a_tenure_that_did_commit_unheard_is_not_taken_back

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        if resource in self.shared.marked:
            await self.wipe(resource)
        try:
            return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)
        except Unavailable:
            self.shared.marked[resource] = self.now_s
            raise


class TakesBackASiblings(FailingFault):
    """A claim that failed takes back whatever its owner has."""

    caught_by = FailedClaims.test_a_claim_that_fails_leaves_a_siblings_tenure_alone

    async def failed(self, resource: str, owner: str, ttl_s: float) -> None:
        await self.wipe(resource)


class GapsAreLapses(FailingFault):
    """After a claim that failed nothing is known of the tenure before."""

    caught_by = FailedClaims.test_a_failed_claim_after_a_release_leaves_it_known_that_all_was_in_order

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        answer = await super().claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)
        if isinstance(answer, Lease) and resource in self.shared.marked:
            return replace(answer, after_lapse=True)
        return answer

    async def failed(self, resource: str, owner: str, ttl_s: float) -> None:
        self.shared.marked[resource] = self.now_s


class SilenceIsNo(LeaseSaboteur):
    """A store out of reach holds nothing."""

    caught_by = FailedClaims.test_a_store_out_of_reach_is_no_answer_to_anything

    async def hints(self, kind: str) -> list[Hint]:
        with suppress(Unavailable):
            return await self.twin.hints(kind)
        return []


class SilenceIsLoss(RenewalFault):
    """A renewal that reaches nothing has lost the lease."""

    caught_by = FailedClaims.test_a_renewal_that_reaches_nothing_costs_nothing_while_the_lease_lasts

    async def renew(self, lease: Lease, *, ttl_s: float, data: Data = None) -> Lease | None:
        if lease.resource in self.shared.marked:
            return None
        try:
            return await self.twin.renew(lease, ttl_s=ttl_s, data=data)
        except Unavailable:
            self.shared.marked[lease.resource] = self.now_s
            raise


class TheKilledStay(LeaseSaboteur):
    """A claim that began is in the way until it ends, however its process does."""

    caught_by = StoppedClaims.test_killed_anywhere_a_seat_is_claimable_when_its_ttl_has_passed

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        if resource in self.shared.marked:
            return ClaimRefused(RefusalRule.HELD, owner)
        self.shared.marked[resource] = self.now_s
        answer = await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)
        del self.shared.marked[resource]
        return answer


class SilentReleasesFail(LeaseSaboteur):
    """A release that was not answered at once has failed."""

    caught_by = FailedReleases.test_a_release_that_lost_the_answer_to_a_write_is_one_all_the_same

    async def release(self, lease: Lease) -> None:
        began_s = self.now_s
        await self.twin.release(lease)
        if self.now_s - began_s > _NO_TIME_S:
            raise Unavailable("it took too long")


class FailedReleasesGoOn(LeaseSaboteur):
    """A tenure whose release failed is renewed as if nothing had been."""

    caught_by = FailedReleases.test_a_tenure_whose_release_failed_is_renewed_no_more_by_its_process

    async def release(self, lease: Lease) -> None:
        try:
            await self.twin.release(lease)
        finally:
            self.twin._released.clear()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class ReleasesOnce(LeaseSaboteur):
    """A release is tried once."""

    caught_by = FailedReleases.test_a_release_that_failed_is_done_by_the_next_attempt

    async def release(self, lease: Lease) -> None:
        if lease.resource not in self.shared.marked:
            self.shared.marked[lease.resource] = self.now_s
            await self.twin.release(lease)


class EverythingIsClean(ClaimFault):
    """Every tenure but the first comes after one that ended in order."""

    caught_by = FailedReleases.test_stopped_anywhere_a_release_leaves_the_seat_claimable_by_its_ttl

    def granted(self, lease: Lease) -> Lease:
        return replace(lease, after_lapse=lease.epoch == 1)

    async def release(self, lease: Lease) -> None:
        await asyncio.sleep(0)
        await self.twin.release(lease)


LEASE_FAILURE_FAULTS: tuple[type[LeaseSaboteur], ...] = (
    ClaimsTwice,
    TakesSilenceForFailure,
    UnheardIsLost,
    GivesNothingBack,
    LateWritesAreInTheWay,
    GivenUpIsInTheWay,
    ClaimingIsFree,
    FailedTenuresAreFree,
    TakesBackASiblings,
    GapsAreLapses,
    SilenceIsNo,
    SilenceIsLoss,
    TheKilledStay,
    SilentReleasesFail,
    FailedReleasesGoOn,
    ReleasesOnce,
    EverythingIsClean,
)
