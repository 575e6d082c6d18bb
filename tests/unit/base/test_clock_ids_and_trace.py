"""Time, ids and traces as everything else is given them."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta

import pytest

from crewlet.base.clock import SystemClock
from crewlet.base.ids import RandomIds
from crewlet.base.trace import Trace, child_of, fresh_trace


def test_the_wall_time_is_utc() -> None:
    now = SystemClock().now()

    assert now.tzinfo is UTC
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=1)


def test_elapsed_time_never_goes_back() -> None:
    clock = SystemClock()
    read = [clock.elapsed_s() for _ in range(100)]

    assert read == sorted(read)


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no clock that counts sleep")
def test_elapsed_time_counts_the_machines_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    slept_s = 3600.0
    awake_s = time.clock_gettime(time.CLOCK_MONOTONIC)
    clocks = {time.CLOCK_BOOTTIME: awake_s + slept_s, time.CLOCK_MONOTONIC: awake_s}
    monkeypatch.setattr(time, "clock_gettime", clocks.__getitem__)

    assert SystemClock().elapsed_s() == awake_s + slept_s


def test_uuids_are_random_ones_and_differ() -> None:
    made = [RandomIds().uuid() for _ in range(100)]

    assert {each.version for each in made} == {4}
    assert len(set(made)) == 100


def test_hexadecimal_ids_keep_their_leading_zeros() -> None:
    ids = RandomIds(random.Random(1))
    made = [ids.hex(4) for _ in range(300)]

    assert {len(each) for each in made} == {4}
    assert any(each.startswith("0") for each in made)
    assert all(set(each) <= set("0123456789abcdef") for each in made)


def test_a_seed_makes_the_same_ids_again() -> None:
    first, second = RandomIds(random.Random(7)), RandomIds(random.Random(7))

    assert [first.uuid(), first.hex(8)] == [second.uuid(), second.hex(8)]


def test_an_event_outside_any_span_has_a_trace_of_its_own() -> None:
    one, other = fresh_trace(RandomIds()), fresh_trace(RandomIds())

    assert (len(one.trace_id), len(one.span_id), one.parent_span_id) == (32, 16, "")
    assert one.trace_id != other.trace_id


def test_a_child_stays_in_its_trace_under_its_parent() -> None:
    parent = Trace("a" * 32, "b" * 16, "c" * 16)
    child = child_of(parent, RandomIds())

    assert (child.trace_id, child.parent_span_id) == (parent.trace_id, parent.span_id)
    assert child.span_id not in (parent.span_id, parent.parent_span_id)
