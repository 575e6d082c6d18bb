"""Promises about tenures: one holder at a time, an epoch that never comes again, and an end that everybody reads."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from crewlet.coordination import ClaimRefused, Lease, RefusalRule
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.lease_harness import LEASE_TTL_S, LeaseHarness

__all__ = ["Releases", "Renewals", "Tenures"]

SEAT = "seat:ada"


class Tenures(Contract):
    """Taking what nobody holds."""

    @pytest.mark.spec("S-004", "S-007", "S-209")
    async def test_a_claim_says_who_holds_what_under_which_epoch_until_when(self, leases: LeaseHarness) -> None:
        one = await leases.claimant("node-1")

        lease = await one.claimed(SEAT)

        assert (lease.resource, lease.owner, lease.preferred) == (SEAT, one.owner, "node-1")
        assert lease.protocol == 4
        assert lease.epoch > 0
        assert lease.acquired_at <= lease.expires_at - timedelta(seconds=LEASE_TTL_S)

    @pytest.mark.spec("S-016", "S-018")
    async def test_both_times_are_on_the_stores_own_clock(self, leases: LeaseHarness) -> None:
        one = await leases.claimant()

        lease = await one.claimed(SEAT)

        assert abs((leases.now() - lease.acquired_at).total_seconds()) < 2
        assert abs((lease.expires_at - leases.now()).total_seconds() - LEASE_TTL_S) < 2

    @pytest.mark.spec("S-002", "S-202")
    async def test_what_is_held_is_refused_to_everybody_else_by_name(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        lease = await one.claimed(SEAT)
        await leases.disturb()

        answer = await other.claim(SEAT)

        assert answer == ClaimRefused(RefusalRule.HELD, one.owner)
        assert await one.renewed(lease)

    @pytest.mark.spec("S-006")
    async def test_two_processes_of_one_node_do_not_share_a_tenure(self, leases: LeaseHarness) -> None:
        leaving, starting = await leases.claimant("node-0"), await leases.claimant("node-0")
        await leaving.claimed(SEAT)

        assert await starting.claim(SEAT) == ClaimRefused(RefusalRule.HELD, leaving.owner)

    async def test_a_holder_is_refused_a_second_tenure_too(self, leases: LeaseHarness) -> None:
        one = await leases.claimant()
        lease = await one.claimed(SEAT)

        assert await one.claim(SEAT) == ClaimRefused(RefusalRule.HELD, one.owner)
        assert (await one.renewed(lease)).epoch == lease.epoch

    @pytest.mark.spec("S-002", "C-056")
    async def test_of_many_that_claim_at_once_one_holds_and_the_others_are_told_whom(
        self, leases: LeaseHarness
    ) -> None:
        crowd = [await leases.claimant(f"node-{number}") for number in range(8)]

        answers = await asyncio.gather(*(each.claim(SEAT) for each in crowd))

        won = [answer for answer in answers if isinstance(answer, Lease)]
        assert len(won) == 1
        assert {answer.holder for answer in answers if isinstance(answer, ClaimRefused)} == {won[0].owner}

    @pytest.mark.spec("S-008", "S-009", "C-107")
    async def test_what_lapsed_is_claimable_by_anybody_under_a_higher_epoch(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        first = await one.claimed(SEAT)
        await leases.lapse()

        second = await other.claimed(SEAT)

        assert second.epoch > first.epoch
        assert second.acquired_at > first.acquired_at
        assert second.after_lapse

    @pytest.mark.spec("S-009")
    async def test_a_tenure_that_its_own_owner_claims_again_has_another_epoch(self, leases: LeaseHarness) -> None:
        one = await leases.claimant()
        first = await one.claimed(SEAT)
        await leases.lapse()

        second = await one.claimed(SEAT)

        assert second.epoch > first.epoch

    @pytest.mark.spec("S-008")
    async def test_an_epoch_never_comes_again(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        epochs: list[int] = []
        for claimant in (one, other, one, one, other):
            lease = await claimant.claimed(SEAT)
            epochs.append(lease.epoch)
            await claimant.leases.release(lease)
            await leases.disturb()

        assert epochs == sorted(set(epochs))

    async def test_the_first_tenure_of_all_comes_after_a_lapse(self, leases: LeaseHarness) -> None:
        assert (await (await leases.claimant()).claimed(SEAT)).after_lapse

    async def test_each_resource_has_a_holder_and_a_counter_of_its_own(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        for _ in range(2):
            await one.leases.release(await one.claimed(SEAT))

        here, there = await one.claimed(SEAT), await other.claimed("seat:bob")

        assert here.epoch == there.epoch + 2

    async def test_names_that_no_key_could_hold_are_as_good_as_others(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        names = ["seat:söhne & co.", "seat:söhne & co", "seat:a.b", "seat:a:b", "seat:>"]
        for name in names:
            await one.claimed(name)

        assert [await other.claim(name) for name in names] == [ClaimRefused(RefusalRule.HELD, one.owner)] * len(names)
        assert sorted(lease.resource for lease in await other.leases.held("seat")) == sorted(names)


class Renewals(Contract):
    """Going on holding."""

    @pytest.mark.spec("S-016")
    async def test_a_renewal_moves_the_end_and_nothing_else(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        first = await one.claimed(SEAT)
        lease = first
        for _ in range(3):
            await leases.advance(LEASE_TTL_S / 2)
            lease = await one.renewed(lease)
        await leases.disturb()

        assert (lease.epoch, lease.acquired_at, lease.owner) == (first.epoch, first.acquired_at, first.owner)
        assert lease.expires_at >= first.expires_at + timedelta(seconds=1.4 * LEASE_TTL_S)
        assert await other.claim(SEAT) == ClaimRefused(RefusalRule.HELD, one.owner)

    @pytest.mark.spec("S-009")
    async def test_a_lapsed_tenure_is_not_renewed(self, leases: LeaseHarness) -> None:
        one = await leases.claimant()
        lease = await one.claimed(SEAT)
        await leases.lapse()

        assert await one.leases.renew(lease, ttl_s=LEASE_TTL_S) is None

    async def test_a_tenure_that_another_has_now_is_not_renewed(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        old = await one.claimed(SEAT)
        await leases.lapse()
        new = await other.claimed(SEAT)

        assert await one.leases.renew(old, ttl_s=LEASE_TTL_S) is None
        assert await other.renewed(new)

    async def test_an_earlier_tenure_of_the_same_owner_is_not_renewed(self, leases: LeaseHarness) -> None:
        one = await leases.claimant()
        old = await one.claimed(SEAT)
        await one.leases.release(old)
        await one.claimed(SEAT)

        assert await one.leases.renew(old, ttl_s=LEASE_TTL_S) is None

    async def test_two_renewals_at_once_are_both_right(self, leases: LeaseHarness) -> None:
        one = await leases.claimant()
        lease = await one.claimed(SEAT)

        renewed = await asyncio.gather(*(one.leases.renew(lease, ttl_s=LEASE_TTL_S) for _ in range(4)))

        assert [each is not None and each.epoch == lease.epoch for each in renewed] == [True] * 4

    async def test_a_renewal_replaces_what_the_holder_says_of_itself_only_where_it_says_something(
        self, leases: LeaseHarness
    ) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        lease = await one.claim("node:node-1", data={"roles": ["work"], "seats_held": 1})
        assert isinstance(lease, Lease)

        kept = await one.leases.renew(lease, ttl_s=LEASE_TTL_S)
        (read,) = await other.leases.held("node")
        replaced = await one.leases.renew(lease, ttl_s=LEASE_TTL_S, data={"seats_held": 2})
        (read_again,) = await other.leases.held("node")

        assert kept is not None
        assert kept.data == read.data == {"roles": ["work"], "seats_held": 1}
        assert replaced is not None
        assert replaced.data == read_again.data == {"seats_held": 2}


class Releases(Contract):
    """Giving back."""

    async def test_what_is_released_is_claimable_at_once_and_known_to_be_left_in_order(
        self, leases: LeaseHarness
    ) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        first = await one.claimed(SEAT)
        await leases.disturb()

        await one.leases.release(first)

        second = await other.claimed(SEAT)
        assert second.epoch > first.epoch
        assert not second.after_lapse

    async def test_a_released_tenure_is_not_renewed(self, leases: LeaseHarness) -> None:
        one = await leases.claimant()
        lease = await one.claimed(SEAT)
        await one.leases.release(lease)

        assert await one.leases.renew(lease, ttl_s=LEASE_TTL_S) is None

    async def test_a_release_after_the_lapse_ends_nothing_and_tells_nobody_that_all_was_in_order(
        self, leases: LeaseHarness
    ) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        lease = await one.claimed(SEAT)
        await leases.lapse()

        await one.leases.release(lease)

        assert (await other.claimed(SEAT)).after_lapse

    async def test_a_late_release_leaves_the_successor_alone(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        old = await one.claimed(SEAT)
        await leases.lapse()
        new = await other.claimed(SEAT)

        await one.leases.release(old)

        assert await other.renewed(new)
        await leases.lapse()
        assert (await one.claimed(SEAT)).after_lapse

    async def test_a_lapse_after_a_release_is_a_lapse(self, leases: LeaseHarness) -> None:
        one = await leases.claimant()
        await one.leases.release(await one.claimed(SEAT))
        await one.claimed(SEAT)
        await leases.lapse()

        assert (await one.claimed(SEAT)).after_lapse

    async def test_releasing_twice_is_harmless(self, leases: LeaseHarness) -> None:
        one, other = await leases.claimant("node-1"), await leases.claimant("node-2")
        lease = await one.claimed(SEAT)
        await one.leases.release(lease)
        await other.claimed(SEAT)

        await one.leases.release(lease)

        assert await one.claim(SEAT) == ClaimRefused(RefusalRule.HELD, other.owner)
