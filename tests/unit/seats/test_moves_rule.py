"""What the simulated fleet's rule about moves finds, and what it lets pass."""

from __future__ import annotations

import pytest

from crewlet.testing.fleet_simulation.moves import Restart, SharedSeats, moved_too_often

EVEN = SharedSeats(("s0", "s1", "s2", "s3"), nodes=2)
UNEVEN = SharedSeats(("s0", "s1", "s2"), nodes=2)


def test_away_and_home_is_what_a_restart_may_do_to_its_own_seats() -> None:
    restarts = [Restart("a", ("s0", "s1"), {"s0": 2, "s1": 1}), Restart("b", ("s2", "s3"), {"s2": 2, "s3": 2})]

    assert [*moved_too_often(restarts, [EVEN])] == []


@pytest.mark.parametrize("group", [EVEN, UNEVEN])
@pytest.mark.parametrize("moved", [{"s0": 3}, {"s2": 1}])
def test_a_third_move_or_a_seat_of_somebody_else_is_found(group: SharedSeats, moved: dict[str, int]) -> None:
    assert len([*moved_too_often([Restart("a", ("s0", "s1"), moved), Restart("b", ("s2",), {})], [group])]) >= 1


def test_a_seat_that_stays_with_a_peer_is_found_where_shares_come_out_even() -> None:
    restarts = [Restart("a", ("s0", "s1"), {"s0": 1}), Restart("b", ("s0", "s2", "s3"), {"s0": 2})]

    assert len([*moved_too_often(restarts, [EVEN])]) == 1
    assert [*moved_too_often(restarts, [UNEVEN])] == []


def test_there_are_no_more_moves_above_two_than_places_to_spare_explain() -> None:
    restarts = [Restart(node, ("s0", "s1"), {"s0": 2, "s1": 1}) for node in "ab"]

    assert UNEVEN.moves_above_two_max(2) == 2
    assert [*moved_too_often(restarts, [UNEVEN])] == []
    assert [*moved_too_often([Restart(node, ("s0", "s1"), {"s0": 2, "s1": 2}) for node in "ab"], [UNEVEN])] != []
