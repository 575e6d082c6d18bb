"""Promises about claims and releases that fail part way: what is left, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count

import pytest

from crewlet.base.errors import Unavailable
from crewlet.coordination import ClaimRefused, Lease, RecordStore, RefusalRule
from crewlet.testing.contracts.contract import Capability, Contract, needs
from crewlet.testing.contracts.lease_harness import LEASE_TTL_S, Claimant, LeaseHarness
from crewlet.testing.contracts.lease_steps import Steps

__all__ = ["FailedClaims", "FailedReleases", "StoppedClaims"]

SEAT = "seat:ada"
CLAIMING, COUNTER, TOKEN = ("leases", 1), ("epochs", 1), ("leases", 2)
"""The three writes of a tenure: the bucket, and the number among the process's writes to it."""


class FailedClaims(Contract):
    """A claim whose store fails it."""

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-010")
    async def test_a_tenure_is_three_writes(self, leases: LeaseHarness) -> None:
        written: list[tuple[str, int]] = []
        steps = Steps(before_write=lambda name, number: written.append((slot_of(name), number)))

        await (await leases.claimant(steps=steps)).claimed(SEAT)

        assert written == [CLAIMING, COUNTER, TOKEN]

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-012")
    @pytest.mark.parametrize("write", [CLAIMING, COUNTER, TOKEN])
    async def test_a_claim_that_lost_the_answer_to_a_write_is_granted_all_the_same(
        self, leases: LeaseHarness, write: tuple[str, int]
    ) -> None:
        one = await spoiled(leases, write, leases.lose_reply)

        lease = await one.claimed(SEAT)

        assert await one.renewed(lease)

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-011", "S-013")
    async def test_a_claim_whose_counter_is_out_of_reach_gives_its_record_back_at_once(
        self, leases: LeaseHarness
    ) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        await leases.cut(leases.stores(one).epochs)

        with pytest.raises(Unavailable):
            await one.claim(SEAT)

        await other.claimed(SEAT)

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-011", "S-013", "S-014")
    @pytest.mark.parametrize("write", [COUNTER, TOKEN])
    async def test_a_write_that_arrives_after_its_claim_gave_up_changes_nothing(
        self, leases: LeaseHarness, write: tuple[str, int]
    ) -> None:
        one, other = await spoiled(leases, write, leases.withhold), await leases.claimant("node-2")

        with pytest.raises(Unavailable):
            await one.claim(SEAT)
        await leases.deliver(store_of(leases, one, write))

        assert await other.leases.holder(SEAT) is None
        first = await other.claimed(SEAT)
        await other.leases.release(first)
        assert (await one.claimed(SEAT)).epoch > first.epoch

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-014", "S-015")
    async def test_a_first_write_that_arrives_after_its_claim_gave_up_is_held_until_it_lapses(
        self, leases: LeaseHarness
    ) -> None:
        one, other = await spoiled(leases, CLAIMING, leases.withhold), await leases.claimant("node-2")

        with pytest.raises(Unavailable):
            await one.claim(SEAT)
        await leases.deliver(leases.stores(one).leases)

        for each in (one, other):
            assert await each.claim(SEAT) == ClaimRefused(RefusalRule.HELD, one.owner)
        assert [lease.epoch for lease in await other.leases.held("seat")] == [0]
        await leases.lapse()
        await other.claimed(SEAT)

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-012")
    async def test_a_tenure_that_did_commit_unheard_is_not_taken_back(self, leases: LeaseHarness) -> None:
        duty, token = "worker:tick", ("duties", 2)
        one, other = await spoiled(leases, token, leases.cut_after_write), await leases.claimant("node-2")

        with pytest.raises(Unavailable):
            await one.claim(duty, ttl_s=60.0)

        standing = await other.leases.holder(duty)
        assert standing is not None
        assert (standing.owner, standing.epoch) == (one.owner, 1)
        assert await other.claim(duty) == ClaimRefused(RefusalRule.HELD, one.owner)

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-012")
    async def test_a_tenure_whose_answer_came_late_is_its_claimants(self, leases: LeaseHarness) -> None:
        one, other = await spoiled(leases, TOKEN, leases.cut_after_write), await leases.claimant("node-2")
        store = leases.stores(one).leases

        async def mended() -> None:
            while await other.leases.holder(SEAT) is None:
                await leases.advance(0.02)
            await leases.advance(0.2)
            await leases.mend(store)

        lease, _ = await asyncio.gather(one.claim(SEAT), mended())

        assert isinstance(lease, Lease)
        assert await one.renewed(lease)
        assert await other.claim(SEAT) == ClaimRefused(RefusalRule.HELD, one.owner)

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-012")
    async def test_a_claim_that_fails_leaves_a_siblings_tenure_alone(self, leases: LeaseHarness) -> None:
        one, duty = await spoiled(leases, ("duties", 1), leases.withhold), "worker:tick"

        async def sibling() -> Lease:
            await leases.advance(0.05)
            return await one.claimed(duty, ttl_s=60.0)

        failed, granted = await asyncio.gather(one.claim(duty, ttl_s=60.0), sibling(), return_exceptions=True)

        assert isinstance(failed, Unavailable)
        assert isinstance(granted, Lease)
        assert (await one.renewed(granted, ttl_s=60.0)).epoch == granted.epoch

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-011")
    async def test_a_failed_claim_after_a_release_leaves_it_known_that_all_was_in_order(
        self, leases: LeaseHarness
    ) -> None:
        one, other = await spoiled(leases, TOKEN, leases.withhold), await leases.claimant("node-2")
        await other.leases.release(await other.claimed(SEAT))
        with pytest.raises(Unavailable):
            await one.claim(SEAT)

        assert not (await other.claimed(SEAT)).after_lapse

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("C-055")
    async def test_a_store_out_of_reach_is_no_answer_to_anything(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        lease = await one.claimed(SEAT)
        await leases.cut(*leases.stores(one).all)

        for call in (
            lambda: one.claim("seat:bob"),
            lambda: one.claim(SEAT),
            lambda: one.leases.renew(lease, ttl_s=LEASE_TTL_S),
            lambda: one.leases.release(lease),
            lambda: one.leases.holder("seat:bob"),
            lambda: one.leases.held("seat"),
            lambda: one.leases.hints("seat"),
        ):
            with pytest.raises(Unavailable):
                await call()

        assert await other.leases.holder("seat:bob") is None

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("C-009")
    async def test_a_renewal_that_reaches_nothing_costs_nothing_while_the_lease_lasts(
        self, leases: LeaseHarness
    ) -> None:
        one = await leases.claimant()
        lease = await one.claimed(SEAT)
        await leases.cut(*leases.stores(one).all)
        with pytest.raises(Unavailable):
            await one.leases.renew(lease, ttl_s=LEASE_TTL_S)
        await leases.mend(*leases.stores(one).all)

        assert (await one.renewed(lease)).epoch == lease.epoch


class StoppedClaims(Contract):
    """A claim whose caller gave it up, or whose process was killed, at each of its requests."""

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-011", "S-012")
    async def test_given_up_anywhere_a_seat_is_claimable_at_once_unless_it_was_had(self, leases: LeaseHarness) -> None:
        other, had, stop_at = await leases.claimant("node-2"), 0, 0

        for stop_at in count(1):
            steps = Steps(stop_at)
            one = await leases.claimant("node-1", steps=steps)
            resource = f"seat:stopped-{stop_at}"
            if await steps.run(one.claim(resource)) is not None:
                break
            standing = await other.leases.holder(resource)
            if standing is None:
                await other.claimed(resource)
            else:
                assert (standing.owner, standing.epoch) == (one.owner, 1)
                had += 1

        assert stop_at > 2 * len([CLAIMING, COUNTER, TOKEN])
        assert had == 1

    @needs(Capability.LEASE_STORE)
    @pytest.mark.spec("S-015", "S-008")
    async def test_killed_anywhere_a_seat_is_claimable_when_its_ttl_has_passed(self, leases: LeaseHarness) -> None:
        other, resources, refused = await leases.claimant("node-2"), list[str](), 0

        for stop_at in count(1):
            steps = Steps(stop_at, dies=True)
            one = await leases.claimant("node-1", steps=steps)
            resource = f"seat:killed-{stop_at}"
            if await steps.run(one.claim(resource)) is not None:
                break
            resources.append(resource)
            answer = await other.claim(resource)
            refused += answer == ClaimRefused(RefusalRule.HELD, one.owner)
            if isinstance(answer, Lease):
                await other.leases.release(answer)
        await leases.lapse()

        assert refused > len([CLAIMING, COUNTER, TOKEN])
        for resource in resources:
            (hint,) = [each for each in await other.leases.hints("seat") if each.resource == resource] or [None]
            lease = await other.claimed(resource)
            assert lease.epoch > (0 if hint is None else hint.epoch)


class FailedReleases(Contract):
    """A release whose store fails it, or that is stopped."""

    @needs(Capability.LEASE_STORE)
    @pytest.mark.parametrize("slot", ["leases", "epochs"])
    async def test_a_release_that_lost_the_answer_to_a_write_is_one_all_the_same(
        self, leases: LeaseHarness, slot: str
    ) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        lease = await one.claimed(SEAT)
        leases.lose_reply(store_of(leases, one, (slot, 1)))

        await one.leases.release(lease)

        assert not (await other.claimed(SEAT)).after_lapse

    @needs(Capability.LEASE_STORE)
    async def test_a_tenure_whose_release_failed_is_renewed_no_more_by_its_process(self, leases: LeaseHarness) -> None:
        one, other, duty = await leases.claimant("node-1"), await leases.claimant("node-2"), "worker:tick"
        lease = await one.claimed(duty, ttl_s=60.0)
        stores = leases.stores(one)
        leases.withhold(stores.duties)
        with pytest.raises(Unavailable):
            await one.leases.release(lease)

        renewed = await one.leases.renew(lease, ttl_s=60.0)

        assert renewed is None
        assert await other.claim(duty) == ClaimRefused(RefusalRule.HELD, one.owner)

    @needs(Capability.LEASE_STORE)
    async def test_a_release_that_failed_is_done_by_the_next_attempt(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        lease = await one.claimed(SEAT)
        await leases.cut(leases.stores(one).leases)
        with pytest.raises(Unavailable):
            await one.leases.release(lease)
        await leases.mend(leases.stores(one).leases)

        await one.leases.release(lease)

        assert not (await other.claimed(SEAT)).after_lapse

    @needs(Capability.LEASE_STORE)
    @pytest.mark.parametrize("how", ["given up", "killed"])
    async def test_stopped_anywhere_a_release_leaves_the_seat_claimable_by_its_ttl(
        self, leases: LeaseHarness, how: str
    ) -> None:
        other, left, clean = await leases.claimant("node-2"), dict[str, Lease](), list[bool]()
        claims = 0
        for stop_at in count(1):
            steps = Steps(dies=how == "killed")
            one = await leases.claimant("node-1", steps=steps)
            lease = await one.claimed(f"seat:leaving-{stop_at}")
            steps.stop_in(stop_at)
            await steps.run(one.leases.release(lease))
            claims = stop_at
            if not steps.is_stopped:
                break
            left[lease.resource] = lease
        await leases.lapse()

        assert claims > 4
        for resource, lease in left.items():
            successor = await other.claimed(resource)
            assert successor.epoch > lease.epoch
            clean.append(not successor.after_lapse)
        # From the moment on that the counter knows, and never before.
        assert clean == sorted(clean)
        assert set(clean) == {False, True}


async def spoiled(
    leases: LeaseHarness, write: tuple[str, int], spoil: Callable[[RecordStore], None], node: str = "node-1"
) -> Claimant:
    """A process of which one write is spoiled: the n-th to one of its buckets."""

    def before_write(name: str, number: int) -> None:
        if (slot_of(name), number) == write:
            spoil(store_of(leases, one, write))

    one = await leases.claimant(node, steps=Steps(before_write=before_write))
    return one


def store_of(leases: LeaseHarness, one: Claimant, write: tuple[str, int]) -> RecordStore:
    """The store of one write."""
    stores = leases.stores(one)
    return {"leases": stores.leases, "duties": stores.duties, "epochs": stores.epochs}[write[0]]


def slot_of(name: str) -> str:
    """The slot behind a store's name, which is its case's own."""
    return name.rpartition("_")[0].rpartition("_")[2]
