"""How often each duty comes, and how long a claim on it lasts."""

from __future__ import annotations

import pytest

from crewlet.base import limits
from crewlet.duties import DUTY_TIMES, INTEGRATION_RECONCILE, LEARNING, MAINTENANCE, SCHEDULER, DutyTimes

_MINUTE_S = 60.0


def test_every_duty_has_a_name_of_its_own() -> None:
    assert len({times.name for times in DUTY_TIMES}) == len(DUTY_TIMES) == 8


@pytest.mark.spec("C-160")
def test_the_longest_claim_of_any_duty_is_the_longest_that_a_lease_may_last() -> None:
    assert max(times.ttl_s for times in DUTY_TIMES) == limits.MAX_DUTY_TTL_S


@pytest.mark.spec("C-163", "S-179")
def test_ticks_and_claims_are_sized_from_their_work() -> None:
    assert (SCHEDULER.every_s, SCHEDULER.ttl_s) == (10.0, 30.0)
    assert INTEGRATION_RECONCILE.ttl_s == 4.5 * _MINUTE_S
    assert (MAINTENANCE.every_s, MAINTENANCE.ttl_s) == (15 * _MINUTE_S, 45 * _MINUTE_S)
    assert (LEARNING.every_s, LEARNING.ttl_s) == (60 * _MINUTE_S, 180 * _MINUTE_S)
    assert min(times.every_s for times in DUTY_TIMES) == SCHEDULER.every_s
    assert max(times.every_s for times in DUTY_TIMES) == LEARNING.every_s


@pytest.mark.parametrize("times", DUTY_TIMES, ids=lambda times: times.name)
def test_a_claim_outlasts_three_ticks_so_that_one_slow_claim_moves_nothing(times: DutyTimes) -> None:
    assert times.ttl_s >= 3 * times.every_s
    assert times.ttl_s >= SCHEDULER.ttl_s


def test_the_jobs_of_maintenance_fit_into_its_claim() -> None:
    jobs = 3

    assert jobs * limits.MAINTENANCE_JOB_MAX_S < MAINTENANCE.ttl_s * limits.DUTY_STOPPED_AT_FRACTION
