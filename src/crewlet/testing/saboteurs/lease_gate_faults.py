"""Saboteurs of the protocol gate, and of what a successor wrote."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from crewlet.base.errors import Unavailable
from crewlet.coordination import LEASE_PROTOCOL, ClaimRefused, Lease, RefusalRule
from crewlet.coordination.lease_names import lease_key, resource_kind
from crewlet.coordination.lease_record import LeaseRecord
from crewlet.coordination.records.codec import decode_record, encode_record
from crewlet.coordination.records.epochs import EpochRecord
from crewlet.testing.contracts.lease_gates import ProtocolGates, SuccessorsFields
from crewlet.testing.saboteurs.lease_saboteur import LeaseSaboteur
from crewlet.testing.saboteurs.lease_tenure_faults import Claimed, ClaimFault, Data, RenewalFault

__all__ = ["LEASE_GATE_FAULTS"]


class GateFault(LeaseSaboteur):
    """A saboteur that judges before, or instead of, the twin's own gate."""

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        refused = await self.judged(resource, owner)
        if refused is not None:
            return refused
        return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)

    async def judged(self, resource: str, owner: str) -> ClaimRefused | None:
        """Whether the claim is refused before the twin is asked."""
        raise NotImplementedError

    async def lower(self, *kinds: str) -> ClaimRefused | None:
        """A refusal by any lease at a lower protocol among these kinds."""
        for kind in kinds:
            for lease in await self.twin.held(kind):
                if lease.protocol < self.protocol:
                    return ClaimRefused(RefusalRule.PROTOCOL, lease.owner, lease.protocol)
        return None

    @property
    def protocol(self) -> int:
        """This process's own."""
        return self.twin._protocol  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def never(self) -> None:
        """The twin's own gate refuses nothing any more."""
        gate = self.twin._gate  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        gate._protocol = -2  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class NoGate(GateFault):
    """Nobody waits for anybody."""

    caught_by = ProtocolGates.test_a_live_presence_or_seat_of_an_older_build_holds_a_seat_back_by_name

    async def judged(self, resource: str, owner: str) -> ClaimRefused | None:
        self.never()
        return None


class DutiesCount(GateFault):
    """A seat waits for duties too."""

    caught_by = ProtocolGates.test_a_duty_or_claim_of_an_older_build_holds_nobody_back

    async def judged(self, resource: str, owner: str) -> ClaimRefused | None:
        return await self.lower("worker", "move")


class EveryKindWaits(GateFault):
    """Presence and duties wait too."""

    caught_by = ProtocolGates.test_presence_and_duties_wait_for_no_older_build

    async def judged(self, resource: str, owner: str) -> ClaimRefused | None:
        return await self.lower("seat", "node")


class GateLooksUp(GateFault):
    """An older build waits for newer ones."""

    caught_by = ProtocolGates.test_an_older_build_waits_for_nobody

    async def judged(self, resource: str, owner: str) -> ClaimRefused | None:
        if resource_kind(resource) != "seat" or self.protocol == LEASE_PROTOCOL:
            return None
        newer = [lease for lease in await self.twin.held("node") if lease.protocol > self.protocol]
        return ClaimRefused(RefusalRule.PROTOCOL, newer[0].owner, newer[0].protocol) if newer else None


class GateComesFirst(EveryKindWaits):
    """The gate refuses what is held anyway."""

    caught_by = ProtocolGates.test_what_a_peer_holds_is_refused_as_held_whatever_the_gate_says


class AnyFloorWillDo(GateFault):
    """The first older lease that is found is the reason."""

    caught_by = ProtocolGates.test_the_lowest_protocol_of_all_is_named

    async def judged(self, resource: str, owner: str) -> ClaimRefused | None:
        if resource_kind(resource) != "seat":
            return None
        lower = [lease for lease in await self.twin.held("node") if lease.protocol < self.protocol]
        highest = max(lower, key=lambda lease: lease.protocol)
        return ClaimRefused(RefusalRule.PROTOCOL, highest.owner, highest.protocol)


class OnceClosedStaysClosed(GateFault):
    """A gate that refused once refuses."""

    caught_by = ProtocolGates.test_when_the_last_older_lease_has_lapsed_the_seat_is_claimable

    async def judged(self, resource: str, owner: str) -> ClaimRefused | None:
        lower = await self.lower("node")
        if lower is not None:
            self.shared.marked[lower.holder] = self.now_s
        closed = [*self.shared.marked] if resource_kind(resource) == "seat" else []
        return ClaimRefused(RefusalRule.PROTOCOL, closed[0], 3) if closed and self.protocol > 3 else None


class LooksNowAndThen(GateFault):
    """What was found a moment ago still holds."""

    caught_by = ProtocolGates.test_every_claim_and_release_of_an_older_build_is_seen_by_the_next_claim

    async def judged(self, resource: str, owner: str) -> ClaimRefused | None:
        self.never()
        if resource_kind(resource) != "seat":
            return None
        self.shared.count += 1
        if self.shared.count % 3 == 1:
            self._found = await self.lower("node")
        return self._found


class SilentProtocolIsOurs(GateFault):
    """A lease that says nothing of its protocol is at ours."""

    caught_by = ProtocolGates.test_a_lease_that_says_no_protocol_is_an_older_builds

    async def judged(self, resource: str, owner: str) -> ClaimRefused | None:
        self.never()
        return None


class UnreadableIsFine(LeaseSaboteur):
    """What cannot be read is no lease."""

    caught_by = ProtocolGates.test_a_lease_that_cannot_be_read_makes_the_answer_unknown

    async def claim(
        self, resource: str, *, owner: str, ttl_s: float, preferred: str = "", data: Data = None
    ) -> Claimed:
        try:
            return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)
        except Unavailable:
            await self.wipe("node:broken")
        return await self.twin.claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)


class RenewsWhatItKnows(RenewalFault):
    """A renewal writes the fields of this build."""

    caught_by = SuccessorsFields.test_a_renewal_keeps_the_fields_that_this_build_does_not_know

    async def renew(self, lease: Lease, *, ttl_s: float, data: Data = None) -> Lease | None:
        renewed = await self.twin.renew(lease, ttl_s=ttl_s, data=data)
        found = await self.record(lease.resource)
        if found is not None:
            said = msgspec.structs.replace(decode_record(LeaseRecord, found.value), unknown={})
            await self.store_of(lease.resource).update(found.key, encode_record(said), expected=found.revision)
        return renewed


class CountsWhatItKnows(ClaimFault):
    """A counter has the fields of this build."""

    caught_by = SuccessorsFields.test_a_counter_keeps_the_fields_that_this_build_does_not_know

    async def answered(self, answer: Claimed) -> Claimed:
        if isinstance(answer, Lease):
            found = await self.stores.epochs.get(lease_key(answer.resource))
            if found is not None:
                said = msgspec.structs.replace(decode_record(EpochRecord, found.value), unknown={})
                await self.stores.epochs.update(found.key, encode_record(said), expected=found.revision)
            return replace(answer)
        return answer


LEASE_GATE_FAULTS: tuple[type[LeaseSaboteur], ...] = (
    NoGate,
    DutiesCount,
    EveryKindWaits,
    GateLooksUp,
    GateComesFirst,
    AnyFloorWillDo,
    OnceClosedStaysClosed,
    LooksNowAndThen,
    SilentProtocolIsOurs,
    UnreadableIsFine,
    RenewsWhatItKnows,
    CountsWhatItKnows,
)
