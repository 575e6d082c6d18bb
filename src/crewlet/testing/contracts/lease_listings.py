"""Promises about reading leases: by kind, one alone, what outlives them, and which names there are."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base import limits
from crewlet.coordination import ClaimRefused, Hint, Lease, RefusalRule, TtlTooLong
from crewlet.testing.contracts.contract import Capability, Contract, needs
from crewlet.testing.contracts.lease_harness import LEASE_TTL_S, LeaseHarness

__all__ = ["DutyLeases", "HeldLeases", "LeaseNames"]

SEAT = "seat:ada"


class HeldLeases(Contract):
    """Who holds what."""

    @pytest.mark.spec("C-050", "C-051")
    async def test_what_is_held_is_listed_by_its_kind_alone(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        ada, bob = await one.claimed(SEAT), await other.claimed("seat:bob")
        presence = await one.claimed("node:node-1")
        duty = await other.claimed("worker:scheduler")
        await leases.disturb()

        held = {kind: await other.leases.held(kind) for kind in ("seat", "node", "worker", "move")}

        assert sorted(held.pop("seat"), key=lambda lease: lease.resource) == [ada, bob]
        assert held == {"node": [presence], "worker": [duty], "move": []}

    async def test_what_was_released_or_lapsed_is_not_held(self, leases: LeaseHarness) -> None:
        one = await leases.claimant()
        await one.claimed("seat:lapses")
        await leases.lapse()
        await one.leases.release(await one.claimed("seat:released"))
        standing = await one.claimed(SEAT)

        assert await one.leases.held("seat") == [standing]
        assert [await one.leases.holder(f"seat:{name}") for name in ("lapses", "released", "never")] == [None] * 3

    async def test_the_holder_of_one_resource_is_read_by_its_name(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        lease = await one.claimed(SEAT)

        assert await other.leases.holder(SEAT) == lease

    @pytest.mark.spec("C-052")
    async def test_who_held_a_seat_last_is_read_after_its_lease_has_lapsed(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        await one.claimed(SEAT)
        await one.claimed("node:node-1")
        await leases.lapse()
        second = await other.claimed(SEAT)
        await leases.lapse()

        assert await one.leases.hints("seat") == [Hint(SEAT, second.epoch, "node-2")]
        assert await one.leases.hints("move") == []


class LeaseNames(Contract):
    """Which names address a lease."""

    @pytest.mark.spec("C-059")
    @pytest.mark.parametrize("resource", ["", "seat", "seat:", ":ada", "move:a:", "move::b", "se at:ada", "seat.x:ada"])
    async def test_a_name_that_no_listing_would_find_is_refused(self, leases: LeaseHarness, resource: str) -> None:
        one = await leases.claimant()

        with pytest.raises(ValueError, match="is not a resource"):
            await one.claim(resource)

    @pytest.mark.spec("C-058")
    @pytest.mark.parametrize("kind", ["", "seat:", "seat.>", "*", ">", "a b"])
    async def test_a_kind_that_addresses_nothing_is_refused_not_answered_with_nothing(
        self, leases: LeaseHarness, kind: str
    ) -> None:
        one = await leases.claimant()
        await one.claimed(SEAT)

        for listed in (one.leases.held, one.leases.hints):
            with pytest.raises(ValueError, match="is not a kind"):
                await listed(kind)


class DutyLeases(Contract):
    """Leases of other kinds: each under a TTL of its own, in a bucket that keeps them longer."""

    @pytest.mark.spec("C-157", "C-158", "C-161", "C-166")
    async def test_any_length_up_to_three_hours_is_granted_whatever_the_lease_ttl(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        wanted = {
            "worker:scheduler": 30.0,
            "worker:integration_reconcile": 270.0,
            "worker:maintenance": 2700.0,
            "worker:learning": limits.MAX_DUTY_TTL_S,
            "move:board-1": 60.0,
            "merge:board-1": 60.0,
            "bulk:fleet": 120.0,
        }

        granted = [await one.claimed(resource, ttl_s=ttl_s) for resource, ttl_s in wanted.items()]

        await leases.lapse()
        lasting = [(lease.expires_at - lease.acquired_at).total_seconds() for lease in granted]
        assert [lasts_s >= ttl_s for lasts_s, ttl_s in zip(lasting, wanted.values(), strict=True)] == [True] * len(
            wanted
        )
        for lease, ttl_s in zip(granted, wanted.values(), strict=True):
            assert await other.claim(lease.resource, ttl_s=ttl_s) == ClaimRefused(RefusalRule.HELD, one.owner)
            assert await one.renewed(lease, ttl_s=ttl_s)

    @pytest.mark.spec("C-108", "S-009")
    async def test_it_ends_at_its_own_deadline_on_the_stores_clock(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        short, long = await one.claimed("worker:short", ttl_s=1.0), await one.claimed("worker:long", ttl_s=30.0)
        await leases.lapse(1.0)
        await leases.disturb()

        assert await one.leases.renew(short, ttl_s=1.0) is None
        assert await other.leases.held("worker") == [long]
        taken = await other.claimed("worker:short", ttl_s=30.0)
        assert taken.epoch > short.epoch
        assert taken.after_lapse
        assert await other.claim("worker:long") == ClaimRefused(RefusalRule.HELD, one.owner)

    async def test_of_many_that_want_a_lapsed_duty_one_gets_it(self, leases: LeaseHarness) -> None:
        crowd = [await leases.claimant(f"node-{number}") for number in range(8)]
        first = await crowd[0].claimed("worker:tick", ttl_s=1.0)
        await leases.lapse(1.0)

        answers = await asyncio.gather(*(each.claim("worker:tick", ttl_s=30.0) for each in crowd))

        won = [answer for answer in answers if isinstance(answer, Lease)]
        assert [lease.epoch > first.epoch for lease in won] == [True]

    @pytest.mark.spec("C-115", "C-158", "C-159")
    @pytest.mark.parametrize(
        ("resource", "ceiling_s"),
        [
            (SEAT, LEASE_TTL_S),
            ("node:node-1", LEASE_TTL_S),
            ("worker:learning", limits.MAX_DUTY_TTL_S),
            ("bulk:fleet", limits.MAX_DUTY_TTL_S),
        ],
    )
    async def test_above_its_ceiling_a_lease_is_refused_with_the_ceiling_named(
        self, leases: LeaseHarness, resource: str, ceiling_s: float
    ) -> None:
        one = await leases.claimant()
        lease = await one.claimed(resource, ttl_s=ceiling_s)

        with pytest.raises(TtlTooLong, match=f"the ceiling of {ceiling_s:g} s"):
            await one.claim(f"{resource}-2", ttl_s=ceiling_s + 0.1)
        with pytest.raises(TtlTooLong, match=f"the ceiling of {ceiling_s:g} s"):
            await one.leases.renew(lease, ttl_s=ceiling_s + 0.1)

        assert await one.leases.holder(f"{resource}-2") is None
        assert await one.leases.holder(resource) == lease

    async def test_a_length_that_holds_nothing_is_refused(self, leases: LeaseHarness) -> None:
        one = await leases.claimant()

        with pytest.raises(ValueError, match="would never be held"):
            await one.claim("worker:tick", ttl_s=0.0)

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("C-060", "C-061", "C-062", "C-157")
    async def test_seats_and_presence_lie_apart_from_all_others_and_the_counters_from_both(
        self, leases: LeaseHarness
    ) -> None:
        one = await leases.claimant()
        for resource in (SEAT, "node:node-1", "worker:tick", "move:board-1"):
            await one.claimed(resource)
        stores = leases.stores(one)

        lying = [
            [kind for kind in ("seat", "node", "worker", "move") if await store.list(f"{kind}.>")]
            for store in stores.all
        ]

        assert lying == [["seat", "node"], ["worker", "move"], ["seat", "node", "worker", "move"]]
