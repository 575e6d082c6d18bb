"""The store's clock as its answers tell it: the true time lies within the bounds, and they are no wider than that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewlet.base import limits
from crewlet.coordination.store_time import StoreClock, StoreTime

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
"""What the store's clock reads at our elapsed second 0, however far that is from ours."""
MICROSECOND = timedelta(microseconds=1)


@dataclass
class OurClock:
    """Set by hand. Its wall time is of no account: nothing may assume that it agrees with the store's."""

    elapsed: float = 0.0

    def now(self) -> datetime:
        return datetime(1999, 12, 31, tzinfo=UTC)

    def elapsed_s(self) -> float:
        return self.elapsed


def heard(ours: OurClock, store: StoreClock, server_time: datetime, *, sent_s: float, heard_s: float) -> None:
    ours.elapsed = heard_s
    store.observe(server_time, sent_s=sent_s)


def bounds(store: StoreClock) -> StoreTime:
    found = store.now()
    assert found is not None
    return found


@given(
    out_s=st.floats(0, 5),
    back_s=st.floats(0, 5),
    since_s=st.floats(0, limits.STORE_CLOCK_ASKED_EVERY_S * 0.99),
    rate=st.floats(-limits.STORE_CLOCK_DRIFT, limits.STORE_CLOCK_DRIFT),
)
def test_the_true_time_lies_within_the_bounds_however_long_either_way_took(
    out_s: float, back_s: float, since_s: float, rate: float
) -> None:
    ours = OurClock()
    store = StoreClock(ours)

    heard(ours, store, NOON, sent_s=0.0, heard_s=out_s + back_s)
    ours.elapsed += since_s
    true = NOON + timedelta(seconds=(back_s + since_s) * (1 + rate))

    found = bounds(store)
    assert found.earliest - MICROSECOND <= true <= found.latest + MICROSECOND


@given(took_s=st.floats(0, 5), since_s=st.floats(0, limits.STORE_CLOCK_ASKED_EVERY_S * 0.99))
def test_the_bounds_are_a_round_trip_apart_and_twice_what_two_clocks_may_drift(took_s: float, since_s: float) -> None:
    ours = OurClock()
    store = StoreClock(ours)

    heard(ours, store, NOON, sent_s=0.0, heard_s=took_s)
    ours.elapsed += since_s

    found = bounds(store)
    wide_s = (found.latest - found.earliest).total_seconds()
    assert wide_s == pytest.approx(took_s + 2 * (took_s + since_s) * limits.STORE_CLOCK_DRIFT, abs=1e-5)


def test_of_two_answers_that_agree_the_narrower_is_believed() -> None:
    ours = OurClock()
    store = StoreClock(ours)
    heard(ours, store, NOON, sent_s=0.0, heard_s=0.01)
    narrow = bounds(store).latest - bounds(store).earliest

    heard(ours, store, NOON + timedelta(seconds=0.5), sent_s=0.1, heard_s=1.0)

    assert bounds(store).latest - bounds(store).earliest < narrow + timedelta(seconds=0.01)


def test_an_answer_that_contradicts_the_one_before_is_another_clock_and_counts() -> None:
    """It was set, or another member leads. What it says with wider bounds is true all the same."""
    ours = OurClock()
    store = StoreClock(ours)
    heard(ours, store, NOON, sent_s=0.0, heard_s=0.01)

    back = NOON - timedelta(seconds=30)
    heard(ours, store, back, sent_s=0.5, heard_s=1.0)

    found = bounds(store)
    assert found.earliest <= back + timedelta(seconds=0.5) <= found.latest < NOON


def test_what_was_heard_too_long_ago_says_nothing() -> None:
    ours = OurClock()
    store = StoreClock(ours)
    unheard = store.now()
    heard(ours, store, NOON, sent_s=0.0, heard_s=0.0)
    ours.elapsed = limits.STORE_CLOCK_ASKED_EVERY_S
    still = store.now()

    ours.elapsed += 0.001

    assert unheard is None
    assert still is not None
    assert store.now() is None


@pytest.mark.parametrize(("offset_s", "surely", "maybe"), [(-2, True, True), (0, False, True), (2, False, False)])
def test_a_deadline_is_past_for_certain_or_by_some_reading(offset_s: int, surely: bool, maybe: bool) -> None:
    now = StoreTime(NOON - timedelta(seconds=1), NOON + timedelta(seconds=1))
    deadline = NOON + timedelta(seconds=offset_s)

    assert (now.is_surely_past(deadline), now.is_maybe_past(deadline)) == (surely, maybe)
