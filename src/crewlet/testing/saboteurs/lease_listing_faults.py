"""Saboteurs of reading leases, of their names, and of duties."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from crewlet.base import limits
from crewlet.base.errors import Conflict
from crewlet.coordination import Hint, Lease, TtlTooLong
from crewlet.coordination.lease_names import is_under_lease_ttl, lease_key, resource_kind
from crewlet.testing.contracts.lease_harness import LEASE_TTL_S
from crewlet.testing.contracts.lease_listings import DutyLeases, HeldLeases, LeaseNames
from crewlet.testing.saboteurs.lease_saboteur import LeaseSaboteur
from crewlet.testing.saboteurs.lease_tenure_faults import Claimed, ClaimFault, Data

__all__ = ["LEASE_LISTING_FAULTS"]


class ListsEveryKind(LeaseSaboteur):
    """A listing is of all leases in the bucket."""

    caught_by = HeldLeases.test_what_is_held_is_listed_by_its_kind_alone

    async def held(self, kind: str) -> list[Lease]:
        return [*await self.twin.held("seat"), *await self.twin.held("node")]


class ListsWhatWasHeld(ClaimFault):
    """What was granted once is listed."""

    caught_by = HeldLeases.test_what_was_released_or_lapsed_is_not_held

    def granted(self, lease: Lease) -> Lease:
        self.shared.tenures[lease.resource] = lease
        return lease

    async def held(self, kind: str) -> list[Lease]:
        return [*self.shared.tenures.values()]


class KnowsNoHolder(LeaseSaboteur):
    """Nobody ever holds it."""

    caught_by = HeldLeases.test_the_holder_of_one_resource_is_read_by_its_name

    async def holder(self, resource: str) -> Lease | None:
        return None


class HintsAreOfTheLiving(LeaseSaboteur):
    """Only what is held now is remembered."""

    caught_by = HeldLeases.test_who_held_a_seat_last_is_read_after_its_lease_has_lapsed

    async def hints(self, kind: str) -> list[Hint]:
        return [Hint(lease.resource, lease.epoch, lease.preferred) for lease in await self.twin.held(kind)]


class TakesAnyName(LeaseSaboteur):
    """Every name is as good as a seat's."""

    caught_by = LeaseNames.test_a_name_that_no_listing_would_find_is_refused

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        try:
            resource_kind(resource)
        except ValueError:
            resource = "seat:any"
        return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)


class AnswersWithNothing(LeaseSaboteur):
    """A kind that addresses nothing has no members."""

    caught_by = LeaseNames.test_a_kind_that_addresses_nothing_is_refused_not_answered_with_nothing

    async def held(self, kind: str) -> list[Lease]:
        with suppress(ValueError):
            return await self.twin.held(kind)
        return []


class DutiesShareTheLeaseTtl(LeaseSaboteur):
    """A duty may last as long as a seat's lease."""

    caught_by = DutyLeases.test_any_length_up_to_three_hours_is_granted_whatever_the_lease_ttl

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        if ttl_s > LEASE_TTL_S:
            raise TtlTooLong(resource, ttl_s=ttl_s, ceiling_s=LEASE_TTL_S)
        return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)


class DutiesLastAsLongAsTheirBucket(LeaseSaboteur):
    """A duty ends when its bucket forgets it."""

    caught_by = DutyLeases.test_it_ends_at_its_own_deadline_on_the_stores_clock

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        lasting_s = ttl_s if is_under_lease_ttl(resource_kind(resource)) else limits.MAX_DUTY_TTL_S
        return await self.twin.claim(resource, owner=owner, ttl_s=lasting_s, preferred=preferred, data=data)


class TakesTheLapsedUnseen(LeaseSaboteur):
    """A lapsed duty is whoever's that saw it lapse."""

    caught_by = DutyLeases.test_of_many_that_want_a_lapsed_duty_one_gets_it

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        if await self.twin.holder(resource) is None:
            self.shared.count += 1
            await asyncio.sleep(0.05 * self.shared.count)
            await self.wipe(resource)
        return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)


class ShortensInSilence(LeaseSaboteur):
    """A lease that is too long is a shorter one."""

    caught_by = DutyLeases.test_above_its_ceiling_a_lease_is_refused_with_the_ceiling_named

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        ceiling_s = LEASE_TTL_S if is_under_lease_ttl(resource_kind(resource)) else limits.MAX_DUTY_TTL_S
        return await self.twin.claim(resource, owner=owner, ttl_s=min(ttl_s, ceiling_s), preferred=preferred, data=data)


class TakesNoLength(LeaseSaboteur):
    """A lease of no length is one of a moment."""

    caught_by = DutyLeases.test_a_length_that_holds_nothing_is_refused

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s or 1.0, preferred=preferred, data=data)


class OneBucketForAll(ClaimFault):
    """Duties lie among the seats too."""

    caught_by = DutyLeases.test_seats_and_presence_lie_apart_from_all_others_and_the_counters_from_both

    async def answered(self, answer: Claimed) -> Claimed:
        if isinstance(answer, Lease):
            with suppress(Conflict):
                await self.stores.leases.create(lease_key(answer.resource), b"{}")
            return replace(answer)
        return answer


LEASE_LISTING_FAULTS: tuple[type[LeaseSaboteur], ...] = (
    ListsEveryKind,
    ListsWhatWasHeld,
    KnowsNoHolder,
    HintsAreOfTheLiving,
    TakesAnyName,
    AnswersWithNothing,
    DutiesShareTheLeaseTtl,
    DutiesLastAsLongAsTheirBucket,
    TakesTheLapsedUnseen,
    ShortensInSilence,
    TakesNoLength,
    OneBucketForAll,
)
