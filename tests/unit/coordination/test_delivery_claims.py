"""Delivery claims: whose a claim is, for how long, and what is done within a bound."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.coordination import CLAIMS, DeliveryClaim, DeliveryClaims, Seen
from crewlet.coordination.records.delivery_claims import claimed
from crewlet.testing import VirtualClock

AT = datetime(2030, 1, 1, tzinfo=UTC)


def claim(claimant: str, *, after_s: float = 0.0, ttl_s: float = 300.0) -> DeliveryClaim:
    at = AT + timedelta(seconds=after_s)
    return DeliveryClaim(
        source="github", delivery_id="d1", claimant=claimant, claimed_at=at, deadline=at + timedelta(seconds=ttl_s)
    )


@pytest.mark.parametrize(("after_s", "wins"), [(-60.0, False), (299.999, False), (300.0, True), (1e6, True)])
def test_a_claim_gives_way_at_its_deadline(after_s: float, wins: bool) -> None:
    standing, wanted = claim("a"), claim("b", after_s=after_s)

    assert claimed(standing, wanted) == (wanted if wins else standing)


def test_a_claim_that_its_claimant_asks_for_again_stays_as_it_is() -> None:
    standing = claim("a")

    assert claimed(standing, claim("a", after_s=400.0)) == standing


def test_a_claim_that_was_given_up_gives_way_at_once_and_no_other_does() -> None:
    standing, wanted = claim("a"), claim("b", after_s=1.0)

    assert claimed(standing, wanted, given_up="a") == wanted
    assert claimed(standing, wanted, given_up="c") == standing


@pytest.mark.spec("C-123")
def test_the_longest_claim_is_as_long_as_the_bucket_lives() -> None:
    assert CLAIMS.age_s == limits.DELIVERY_CLAIM_MAX_S == 30 * 60.0


@pytest.mark.virtual_time
async def test_a_store_that_never_answers_holds_a_delivery_up_for_a_bounded_time() -> None:
    store = MemoryRecordStore(MemoryBucket(CLAIMS, VirtualClock()))
    store.link.silent = True
    claims = DeliveryClaims(store, VirtualClock())

    began_s = asyncio.get_running_loop().time()
    with capture_logs() as logs:
        seen = await claims.claim("github", "d1", claimant="a", ttl_s=300.0)
        await claims.release("github", "d1", claimant="a")
    took_s = asyncio.get_running_loop().time() - began_s

    assert seen is Seen.UNKNOWN
    assert took_s == pytest.approx(2 * limits.DELIVERY_CLAIM_WAIT_S)
    assert [entry["event"] for entry in logs] == ["delivery_claim_unknown", "delivery_claim_not_released"]


@pytest.mark.virtual_time
async def test_what_is_kept_of_claims_that_could_not_be_released_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DELIVERY_CLAIMS_UNRELEASED_MAX", 2)
    store = MemoryRecordStore(MemoryBucket(CLAIMS, VirtualClock()))
    claims = DeliveryClaims(store, VirtualClock())
    for each in ("d1", "d2", "d3"):
        await claims.claim("github", each, claimant="a", ttl_s=300.0)
    store.link.cut = True
    for each in ("d1", "d2", "d3"):
        await claims.release("github", each, claimant="a")
    store.link.cut = False

    seen = [await claims.claim("github", each, claimant="b", ttl_s=300.0) for each in ("d1", "d2", "d3")]

    assert seen == [Seen.BEFORE, Seen.FIRST, Seen.FIRST]
