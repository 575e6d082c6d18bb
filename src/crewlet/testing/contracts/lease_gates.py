"""Promises about fleets of two builds: which claims wait for which leases, and what a successor's fields survive."""

from __future__ import annotations

import msgspec
import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import LEASE_PROTOCOL, ClaimRefused, Lease, RefusalRule
from crewlet.testing.contracts.contract import Capability, Contract, needs
from crewlet.testing.contracts.lease_harness import LEASE_TTL_S, LeaseHarness

__all__ = ["ProtocolGates", "SuccessorsFields"]

SEAT = "seat:ada"
OLDER = LEASE_PROTOCOL - 1


class ProtocolGates(Contract):
    """A seat waits until no live seat or presence lease is held at a lower protocol."""

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-193", "S-195", "S-202")
    @pytest.mark.parametrize("resource", ["node:old", "seat:bob"])
    async def test_a_live_presence_or_seat_of_an_older_build_holds_a_seat_back_by_name(
        self, leases: LeaseHarness, resource: str
    ) -> None:
        old, new = await leases.claimant("old", protocol=OLDER), await leases.claimant("new")
        await old.claimed(resource)
        await leases.disturb()

        assert await new.claim(SEAT) == ClaimRefused(RefusalRule.PROTOCOL, old.owner, OLDER)
        assert await new.leases.holder(SEAT) is None

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-194", "C-162")
    @pytest.mark.parametrize("resource", ["worker:scheduler", "move:board-1"])
    async def test_a_duty_or_claim_of_an_older_build_holds_nobody_back(
        self, leases: LeaseHarness, resource: str
    ) -> None:
        old, new = await leases.claimant("old", protocol=OLDER), await leases.claimant("new")
        await old.claimed(resource, ttl_s=10_800.0)

        await new.claimed(SEAT)

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-194")
    @pytest.mark.parametrize("resource", ["node:new", "worker:scheduler", "bulk:fleet"])
    async def test_presence_and_duties_wait_for_no_older_build(self, leases: LeaseHarness, resource: str) -> None:
        old, new = await leases.claimant("old", protocol=OLDER), await leases.claimant("new")
        await old.claimed("node:old")

        await new.claimed(resource)

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-193", "S-197")
    async def test_an_older_build_waits_for_nobody(self, leases: LeaseHarness) -> None:
        old, new = await leases.claimant("old", protocol=OLDER), await leases.claimant("new")
        await new.claimed("node:new")
        lapsed = await new.claimed(SEAT)
        await old.claimed("seat:bob")
        await leases.lapse()

        assert (await old.claimed(SEAT)).epoch > lapsed.epoch

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-202")
    async def test_what_a_peer_holds_is_refused_as_held_whatever_the_gate_says(self, leases: LeaseHarness) -> None:
        old, new = await leases.claimant("old", protocol=OLDER), await leases.claimant("new")
        await old.claimed(SEAT)

        assert await new.claim(SEAT) == ClaimRefused(RefusalRule.HELD, old.owner)

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-193")
    async def test_the_lowest_protocol_of_all_is_named(self, leases: LeaseHarness) -> None:
        old, oldest = await leases.claimant("old", protocol=OLDER), await leases.claimant("oldest", protocol=1)
        new = await leases.claimant("new")
        await old.claimed("node:old")
        await oldest.claimed("node:oldest")

        assert await new.claim(SEAT) == ClaimRefused(RefusalRule.PROTOCOL, oldest.owner, 1)

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-193")
    async def test_when_the_last_older_lease_has_lapsed_the_seat_is_claimable(self, leases: LeaseHarness) -> None:
        old, new = await leases.claimant("old", protocol=OLDER), await leases.claimant("new")
        await old.claimed("node:old")
        assert isinstance(await new.claim(SEAT), ClaimRefused)
        await leases.lapse()

        await new.claimed(SEAT)

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-198")
    async def test_every_claim_and_release_of_an_older_build_is_seen_by_the_next_claim(
        self, leases: LeaseHarness
    ) -> None:
        old, new = await leases.claimant("old", protocol=OLDER), await leases.claimant("new")

        for number in range(10):
            presence = await old.claimed("node:old")
            barred = await new.claim(f"seat:s{number}")
            await old.leases.release(presence)
            granted = await new.claim(f"seat:s{number}")
            assert barred == ClaimRefused(RefusalRule.PROTOCOL, old.owner, OLDER), number
            assert isinstance(granted, Lease), number

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-193", "S-196")
    async def test_a_lease_that_says_no_protocol_is_an_older_builds(self, leases: LeaseHarness) -> None:
        new = await leases.claimant("new")
        ancient = {"resource": "node:ancient", "owner": "ancient:1", "epoch": 1, "ttl_s": LEASE_TTL_S}
        await leases.stores(new).leases.create("node.ancient", msgspec.json.encode(ancient))

        assert await new.claim(SEAT) == ClaimRefused(RefusalRule.PROTOCOL, "ancient:1", 0)

    @needs(Capability.LEASE_STORE)
    async def test_a_lease_that_cannot_be_read_makes_the_answer_unknown(self, leases: LeaseHarness) -> None:
        new = await leases.claimant("new")
        await leases.stores(new).leases.create("node.broken", b"{")

        with pytest.raises(Unavailable):
            await new.claim(SEAT)

        await leases.lapse()
        await new.claimed(SEAT)


class SuccessorsFields(Contract):
    """What a newer build wrote is there after this one wrote."""

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-196")
    async def test_a_renewal_keeps_the_fields_that_this_build_does_not_know(self, leases: LeaseHarness) -> None:
        one = await leases.claimant()
        lease = await one.claimed("node:one")
        store = leases.stores(one).leases
        record = await store.get("node.one")
        assert record is not None
        said = msgspec.json.decode(record.value, type=dict[str, object]) | {"from_the_future": {"deep": [1]}}
        await store.update("node.one", msgspec.json.encode(said), expected=record.revision)

        renewed = await one.leases.renew(lease, ttl_s=LEASE_TTL_S, data={"seats_held": 3})

        after = await store.get("node.one")
        assert renewed is not None
        assert after is not None
        decoded = msgspec.json.decode(after.value, type=dict[str, object])
        assert decoded.get("from_the_future") == {"deep": [1]}
        assert decoded["data"] == {"seats_held": 3}

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-196")
    async def test_a_counter_keeps_the_fields_that_this_build_does_not_know(self, leases: LeaseHarness) -> None:
        one = await leases.claimant()
        lease = await one.claimed(SEAT)
        store = leases.stores(one).epochs
        record = await store.get("seat.ada")
        assert record is not None
        said = msgspec.json.decode(record.value, type=dict[str, object]) | {"from_the_future": 1}
        await store.update("seat.ada", msgspec.json.encode(said), expected=record.revision)

        await one.leases.release(lease)
        await one.claimed(SEAT)

        after = await store.get("seat.ada")
        assert after is not None
        assert msgspec.json.decode(after.value, type=dict[str, object]).get("from_the_future") == 1
