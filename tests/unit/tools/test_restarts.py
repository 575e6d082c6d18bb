"""When a server that ended is started again."""

from __future__ import annotations

from crewlet.base import limits
from crewlet.tools.restarts import Restarts


def test_a_first_end_costs_no_pause() -> None:
    assert Restarts().after_life(lasted_s=5, now_s=100).refusal(100) == ""


def test_the_pause_grows_with_each_short_life_up_to_a_bound() -> None:
    restarts, pauses = Restarts(), list[float]()
    for _ in range(limits.TOOL_SERVER_FAILED_LIVES_MAX - 1):
        restarts = restarts.after_life(lasted_s=0, now_s=0)
        pauses.append(restarts.not_before_s)

    assert pauses == [0, 2, 4, 8]
    assert restarts.refusal(7.9) == "it is started again in 0.1 s at the earliest"
    assert restarts.refusal(8) == ""


def test_a_server_that_ended_too_often_in_a_row_is_given_up() -> None:
    restarts = Restarts()
    for _ in range(limits.TOOL_SERVER_FAILED_LIVES_MAX):
        restarts = restarts.after_life(lasted_s=0, now_s=0)

    assert restarts.gave_up
    assert restarts.refusal(1e9) == "it ended 5 times in a row and is not started again"


def test_a_long_life_makes_good_for_the_short_ones() -> None:
    restarts = Restarts(failed_lives=4, not_before_s=50)

    after = restarts.after_life(lasted_s=limits.TOOL_SERVER_SETTLED_AFTER_S, now_s=200)

    assert after == Restarts(failed_lives=1, not_before_s=200)
