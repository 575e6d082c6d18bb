"""Saboteurs of tenures: who gets one, under which epoch, how it goes on and how it ends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from crewlet.coordination import ClaimRefused, Lease, RefusalRule
from crewlet.coordination.lease_names import lease_key
from crewlet.testing.contracts.leases import Releases, Renewals, Tenures
from crewlet.testing.contracts.record_harness import SKEW_S
from crewlet.testing.saboteurs.lease_saboteur import LeaseSaboteur

__all__ = ["TENURE_FAULTS"]

Claimed = Lease | ClaimRefused
Data = Mapping[str, Any] | None


class ClaimFault(LeaseSaboteur):
    """Claims, wrongly."""

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        return await self.answered(
            await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)
        )

    async def answered(self, answer: Claimed) -> Claimed:
        """What the claimant is told."""
        return self.granted(answer) if isinstance(answer, Lease) else answer

    def granted(self, lease: Lease) -> Lease:
        """What a claimant that is granted is told."""
        return lease


class ForgetsTheNode(ClaimFault):
    """A lease prefers nobody."""

    caught_by = Tenures.test_a_claim_says_who_holds_what_under_which_epoch_until_when

    def granted(self, lease: Lease) -> Lease:
        return replace(lease, preferred="")


class TimesItByItsOwnClock(ClaimFault):
    """The times are the process's."""

    caught_by = Tenures.test_both_times_are_on_the_stores_own_clock

    def granted(self, lease: Lease) -> Lease:
        skew = timedelta(seconds=SKEW_S)
        return replace(lease, acquired_at=lease.acquired_at - skew, expires_at=lease.expires_at - skew)


class TakesWhatIsHeld(ClaimFault):
    """Whoever claims gets it."""

    caught_by = Tenures.test_what_is_held_is_refused_to_everybody_else_by_name

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        await self.wipe(resource)
        return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)


class NodesHold(ClaimFault):
    """Another process of the holder's node is let in."""

    caught_by = Tenures.test_two_processes_of_one_node_do_not_share_a_tenure

    async def answered(self, answer: Claimed) -> Claimed:
        if isinstance(answer, Lease):
            self.shared.tenures[answer.owner.partition(":")[0]] = answer
            return answer
        return self.shared.tenures[answer.holder.partition(":")[0]]


class HoldersClaimAgain(LeaseSaboteur):
    """Who holds it may claim it once more."""

    caught_by = Tenures.test_a_holder_is_refused_a_second_tenure_too

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        holder = await self.twin.holder(resource)
        if holder is not None and holder.owner == owner:
            return holder
        return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)


class LooksThenTakes(LeaseSaboteur):
    """What was free a moment ago is taken, whoever has it by now."""

    caught_by = Tenures.test_of_many_that_claim_at_once_one_holds_and_the_others_are_told_whom

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        holder = await self.twin.holder(resource)
        if holder is not None:
            return ClaimRefused(RefusalRule.HELD, holder.owner)
        self.shared.count += 1
        await asyncio.sleep(0.05 * self.shared.count)
        await self.wipe(resource)
        return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)


class NothingLapses(ClaimFault):
    """What was never released is held."""

    caught_by = Tenures.test_what_lapsed_is_claimable_by_anybody_under_a_higher_epoch

    async def answered(self, answer: Claimed) -> Claimed:
        if isinstance(answer, ClaimRefused):
            return answer
        first = self.shared.tenures.setdefault(answer.resource, answer)
        return answer if first.owner == answer.owner else ClaimRefused(RefusalRule.HELD, first.owner)


class OwnersKeepTheirEpoch(ClaimFault):
    """Who comes back comes back under the same epoch."""

    caught_by = Tenures.test_a_tenure_that_its_own_owner_claims_again_has_another_epoch

    def granted(self, lease: Lease) -> Lease:
        return replace(lease, epoch=self.shared.tenures.setdefault(lease.owner, lease).epoch)


class CountersGoWithTheLease(LeaseSaboteur):
    """A release takes the counter with it."""

    caught_by = Tenures.test_an_epoch_never_comes_again

    async def release(self, lease: Lease) -> None:
        await self.twin.release(lease)
        counter = await self.stores.epochs.get(lease_key(lease.resource))
        if counter is not None:
            await self.stores.epochs.delete(counter.key, expected=counter.revision)
        self.twin._epochs._seen.clear()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class FirstsAreClean(ClaimFault):
    """Before the first tenure there was none, so all was in order."""

    caught_by = Tenures.test_the_first_tenure_of_all_comes_after_a_lapse

    def granted(self, lease: Lease) -> Lease:
        return replace(lease, after_lapse=lease.after_lapse and lease.epoch > 1)


class OneCounterForAll(ClaimFault):
    """All resources count together."""

    caught_by = Tenures.test_each_resource_has_a_holder_and_a_counter_of_its_own

    def granted(self, lease: Lease) -> Lease:
        self.shared.count += 1
        return replace(lease, epoch=self.shared.count)


class NamesAreSimplified(LeaseSaboteur):
    """What no key can hold is left out of a name."""

    caught_by = Tenures.test_names_that_no_key_could_hold_are_as_good_as_others

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        simple = re.sub(r"[^a-z:]", "", resource)
        return await self.twin.claim(simple, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)


class RenewalFault(LeaseSaboteur):
    """Renews, wrongly."""

    async def renew(self, lease: Lease, *, ttl_s: float, data: Data = None) -> Lease | None:
        renewed = await self.twin.renew(lease, ttl_s=ttl_s, data=data)
        return None if renewed is None else self.renewed(renewed)

    def renewed(self, lease: Lease) -> Lease:
        """What the holder is told."""
        return lease


class RenewalsBeginAnew(RenewalFault):
    """Each renewal is when it began."""

    caught_by = Renewals.test_a_renewal_moves_the_end_and_nothing_else

    def renewed(self, lease: Lease) -> Lease:
        return replace(lease, acquired_at=lease.expires_at - timedelta(seconds=2))


class RenewsWhatLapsed(RenewalFault):
    """What nobody has is its last holder's."""

    caught_by = Renewals.test_a_lapsed_tenure_is_not_renewed

    async def renew(self, lease: Lease, *, ttl_s: float, data: Data = None) -> Lease | None:
        renewed = await self.twin.renew(lease, ttl_s=ttl_s, data=data)
        return lease if renewed is None and await self.twin.holder(lease.resource) is None else renewed


class RenewsTheSuccessors(RenewalFault):
    """A renewal is one of whatever stands."""

    caught_by = Renewals.test_a_tenure_that_another_has_now_is_not_renewed

    async def renew(self, lease: Lease, *, ttl_s: float, data: Data = None) -> Lease | None:
        return await self.twin.renew(await self.twin.holder(lease.resource) or lease, ttl_s=ttl_s, data=data)


class RenewsByOwner(RenewalFault):
    """Any tenure of the owner will do."""

    caught_by = Renewals.test_an_earlier_tenure_of_the_same_owner_is_not_renewed

    async def renew(self, lease: Lease, *, ttl_s: float, data: Data = None) -> Lease | None:
        standing = await self.twin.holder(lease.resource)
        same = standing is not None and standing.owner == lease.owner
        return await self.twin.renew(standing if standing is not None and same else lease, ttl_s=ttl_s, data=data)


class OvertakenIsLost(RenewalFault):
    """A renewal that another overtook says that the lease is gone."""

    caught_by = Renewals.test_two_renewals_at_once_are_both_right

    async def renew(self, lease: Lease, *, ttl_s: float, data: Data = None) -> Lease | None:
        self.shared.count += 1
        number = self.shared.count
        renewed = await self.twin.renew(lease, ttl_s=ttl_s, data=data)
        return renewed if number == self.shared.count else None


class SilenceEmpties(RenewalFault):
    """A renewal that says nothing takes back what was said."""

    caught_by = Renewals.test_a_renewal_replaces_what_the_holder_says_of_itself_only_where_it_says_something

    async def renew(self, lease: Lease, *, ttl_s: float, data: Data = None) -> Lease | None:
        return await self.twin.renew(lease, ttl_s=ttl_s, data=data or {})


class ReleasesNothing(LeaseSaboteur):
    """A release waits for the lapse."""

    caught_by = Releases.test_what_is_released_is_claimable_at_once_and_known_to_be_left_in_order

    async def release(self, lease: Lease) -> None:
        """Nothing."""


class RenewsWhatWasReleased(RenewsWhatLapsed):
    """What was released is its last holder's."""

    caught_by = Releases.test_a_released_tenure_is_not_renewed


class EveryReleaseIsClean(LeaseSaboteur):
    """A release that came after the lapse tells the counter that all was in order."""

    caught_by = Releases.test_a_release_after_the_lapse_ends_nothing_and_tells_nobody_that_all_was_in_order

    async def release(self, lease: Lease) -> None:
        await self.twin._epochs.mark_released(lease.resource, epoch=lease.epoch)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        await self.twin.release(lease)


class ReleasesTheSuccessors(LeaseSaboteur):
    """A release takes away whatever stands."""

    caught_by = Releases.test_a_late_release_leaves_the_successor_alone

    async def release(self, lease: Lease) -> None:
        await self.wipe(lease.resource)


class OnceReleasedAlwaysClean(ClaimFault):
    """Where there was a release once, every tenure comes after one."""

    caught_by = Releases.test_a_lapse_after_a_release_is_a_lapse

    def granted(self, lease: Lease) -> Lease:
        return replace(lease, after_lapse=lease.after_lapse and lease.resource not in self.shared.tenures)

    async def release(self, lease: Lease) -> None:
        self.shared.tenures[lease.resource] = lease
        await self.twin.release(lease)


class ReleasesAgain(ReleasesTheSuccessors):
    """The second release is another's end."""

    caught_by = Releases.test_releasing_twice_is_harmless


TENURE_FAULTS: tuple[type[LeaseSaboteur], ...] = (
    ForgetsTheNode,
    TimesItByItsOwnClock,
    TakesWhatIsHeld,
    NodesHold,
    HoldersClaimAgain,
    LooksThenTakes,
    NothingLapses,
    OwnersKeepTheirEpoch,
    CountersGoWithTheLease,
    FirstsAreClean,
    OneCounterForAll,
    NamesAreSimplified,
    RenewalsBeginAnew,
    RenewsWhatLapsed,
    RenewsTheSuccessors,
    RenewsByOwner,
    OvertakenIsLost,
    SilenceEmpties,
    ReleasesNothing,
    RenewsWhatWasReleased,
    EveryReleaseIsClean,
    ReleasesTheSuccessors,
    OnceReleasedAlwaysClean,
    ReleasesAgain,
)
