"""A fleet's bad hours, each from one seed."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from crewlet.seats import Host
from crewlet.seats.seat_keeping import KeptSeat
from crewlet.testing.fleet_simulation import FleetPlan, simulate_fleet

SEEDS = range(20)
SMALL = FleetPlan(nodes=5, seats=24, pinned=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_rule_is_broken_on_a_bad_day(seed: int) -> None:
    with capture_logs():
        run = simulate_fleet(seed, SMALL)

    assert run.findings == []
    assert run.grants > SMALL.seats


@pytest.mark.slow
def test_a_node_that_believes_in_its_leases_for_ever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the age of a renew nor the end of a lease counts: what was cut off acts beside its successor."""
    monkeypatch.setattr(KeptSeat, "left_s", float("inf"))
    monkeypatch.setattr(Host, "may_start", Host.epoch_of)
    with capture_logs():
        runs = [simulate_fleet(seed, SMALL) for seed in range(3)]

    assert any("on 2 nodes at once" in finding for run in runs for finding in run.findings)


@pytest.mark.slow
def test_a_node_that_keeps_more_than_its_share_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is given back, and what a node may hold is everything."""

    def everything(seats: int, _nodes: int) -> int:
        return seats

    monkeypatch.setattr("crewlet.seats.placement._ceil", everything)
    with capture_logs():
        runs = [simulate_fleet(seed, SMALL) for seed in range(3)]

    assert any("its share is at most" in finding for run in runs for finding in run.findings)
