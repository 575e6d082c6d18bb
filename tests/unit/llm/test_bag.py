"""The keys of one entry: who is lent, who rests, until when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from crewlet.llm import Bench, Cooldowns, FailureKind
from crewlet.llm.bag import Bag, Credential, bag_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def a_bag(*secrets: str, cooldowns: Cooldowns | None = None) -> Bag:
    return bag_of("smart", secrets, cooldowns or Cooldowns())


def picked(bag: Bag, now: datetime = NOW) -> Credential:
    credential = bag.pick(now)
    assert credential is not None
    return credential


def bench(bag: Bag, kind: FailureKind, *, reset_after_s: float | None = None, now: datetime = NOW) -> Bench:
    found = bag.bench_for(picked(bag, now), kind, now, reset_after_s)
    assert found is not None
    return found


def test_the_key_with_the_fewest_calls_in_flight_is_lent() -> None:
    bag = a_bag("one", "two")
    first = picked(bag)

    second = picked(bag.lent(first))
    again = picked(bag.lent(first).lent(second).returned(first))

    assert (first.secret, second.secret, again.secret) == ("one", "two", "one")


def test_a_benched_key_is_not_lent_before_its_end_and_is_afterwards() -> None:
    bag = a_bag("one")
    benched = bag.benched(bench(bag, FailureKind.RATE_LIMITED))

    assert benched.pick(NOW + timedelta(seconds=3599)) is None
    assert picked(benched, NOW + timedelta(seconds=3600)).secret == "one"


@pytest.mark.parametrize(
    ("kind", "reset_after_s", "seconds"),
    [
        (FailureKind.RATE_LIMITED, None, 3600),
        (FailureKind.PAYMENT, None, 3600),
        (FailureKind.AUTH, None, 300),
        (FailureKind.RATE_LIMITED, 900.0, 900),
        (FailureKind.RATE_LIMITED, 2.0, 60),
        (FailureKind.RATE_LIMITED, 9e9, 24 * 3600),
    ],
)
def test_a_bench_lasts_as_the_vendor_says_or_else_as_configured(
    kind: FailureKind, reset_after_s: float | None, seconds: int
) -> None:
    assert bench(a_bag("one"), kind, reset_after_s=reset_after_s).until == NOW + timedelta(seconds=seconds)


def test_repeated_authentication_failures_rest_twice_as_long_each_until_one_call_works() -> None:
    bag, now = a_bag("one"), NOW
    waits: list[float] = []
    for _ in range(3):
        found = bench(bag, FailureKind.AUTH, now=now)
        waits.append((found.until - now).total_seconds())
        bag, now = bag.benched(found), found.until

    worked = bag.served(picked(bag, now))

    assert waits == [300, 600, 1200]
    assert (bench(worked, FailureKind.AUTH, now=now).until - now).total_seconds() == 300


@pytest.mark.parametrize(
    "kind", [FailureKind.SERVER, FailureKind.TIMEOUT, FailureKind.NETWORK, FailureKind.BAD_REQUEST]
)
def test_what_is_not_about_the_key_benches_none(kind: FailureKind) -> None:
    bag = a_bag("one")

    assert bag.bench_for(picked(bag), kind, NOW) is None


def test_an_endpoint_that_asks_for_no_key_has_none_to_bench() -> None:
    bag = a_bag("")

    assert bag.bench_for(picked(bag), FailureKind.RATE_LIMITED, NOW) is None


def test_a_later_bench_extends_and_an_earlier_one_does_not_shorten() -> None:
    bag = a_bag("one")
    hint = picked(bag).hint
    long = Bench("smart", hint, NOW + timedelta(hours=2), FailureKind.RATE_LIMITED)
    short = Bench("smart", hint, NOW + timedelta(hours=1), FailureKind.RATE_LIMITED)

    for benched in (bag.benched(long).benched(short), bag.benched(short).benched(long)):
        soonest = benched.soonest(NOW)
        assert soonest is not None
        assert soonest.until == long.until


def test_what_somebody_else_met_with_is_news_once_and_only_where_it_ends_later() -> None:
    bag = a_bag("one")
    hint = picked(bag).hint
    long = Bench("smart", hint, NOW + timedelta(hours=2), FailureKind.AUTH)
    short = Bench("smart", hint, NOW + timedelta(hours=1), FailureKind.AUTH)

    told = bag.told(long)

    assert told is not bag
    assert told.pick(NOW + timedelta(minutes=119)) is None
    assert told.told(long) is told
    assert told.told(short) is told
    assert bag.told(Bench("fast", hint, NOW + timedelta(hours=2), FailureKind.AUTH)) is bag
    assert bag.told(Bench("smart", "0123456789ab", NOW + timedelta(hours=2), FailureKind.AUTH)) is bag


def test_what_somebody_else_met_with_makes_ones_own_next_failure_no_repeat() -> None:
    bag, until = a_bag("one"), NOW + timedelta(hours=1)
    told = bag.told(Bench("smart", picked(bag).hint, until, FailureKind.AUTH))

    assert (bench(told, FailureKind.AUTH, now=until).until - until).total_seconds() == 300


def test_a_bag_takes_over_what_another_knew_of_the_keys_that_both_have() -> None:
    before = a_bag("one", "two")
    failed = bench(before, FailureKind.AUTH)
    before = before.lent(picked(before)).benched(failed)

    after = a_bag("three", "one").taking_over(before)

    assert picked(after).secret == "three"
    assert picked(after.lent(picked(after))).secret == "three", "the other one rests"
    later = failed.until
    again = after.bench_for(picked(a_bag("one")), FailureKind.AUTH, later)
    assert again is not None
    assert (again.until - later).total_seconds() == 600


def test_the_soonest_end_is_named_once_every_key_rests() -> None:
    bag = a_bag("one", "two")
    one_rests = bag.benched(bench(bag, FailureKind.RATE_LIMITED))
    both_rest = one_rests.benched(bench(one_rests, FailureKind.AUTH))

    soonest = both_rest.soonest(NOW)

    assert one_rests.soonest(NOW) is None
    assert soonest is not None
    assert (soonest.until, soonest.reason) == (NOW + timedelta(seconds=300), FailureKind.AUTH)


def test_a_hint_tells_keys_apart_and_gives_none_away() -> None:
    credential = picked(a_bag("sk-secret"))

    assert credential.hint == sha256(b"sk-secret").hexdigest()[:12]
    assert "sk-secret" not in repr(credential)


def test_the_same_key_twice_counts_once() -> None:
    bag = a_bag("one", "one")

    assert bag.benched(bench(bag, FailureKind.RATE_LIMITED)).pick(NOW) is None


@pytest.mark.spec("C-097")
@pytest.mark.parametrize("field", ["rate_limit_seconds", "auth_seconds"])
def test_a_cooldown_below_the_floor_is_refused(field: str) -> None:
    assert getattr(Cooldowns(**{field: 60}), field) == 60

    with pytest.raises(ValueError, match="below the floor"):
        Cooldowns(**{field: 59})
