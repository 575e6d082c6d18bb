"""The fleet as an operator sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crewlet.coordination import Lease
from crewlet.node.fleet_views import FleetView, fleet_view
from crewlet.seats import PlacedSeat, Placement

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SAID: Mapping[str, Any] = {
    "roles": ["ingress", "seats", "workers", "data"],
    "labels": {"zone": "b"},
    "seats_held": 1,
    "status": {"in_flight": 2, "draining": False, "posture": "serve", "version": "0.1.0", "broker": "nats", "mcp": []},
}


def lease(resource: str, node: str = "a", *, left_s: float = 30.0, data: Mapping[str, Any] | None = None) -> Lease:
    return Lease(
        resource=resource,
        owner=f"{node}:1",
        epoch=3,
        acquired_at=NOW - timedelta(hours=1),
        expires_at=NOW + timedelta(seconds=left_s),
        preferred=node,
        data=data or {},
    )


def view(*leases: Lease, company: tuple[PlacedSeat, ...] = (PlacedSeat("ceo"), PlacedSeat("cto"))) -> FleetView:
    def of(kind: str) -> list[Lease]:
        return [each for each in leases if each.resource.startswith(f"{kind}:")]

    return fleet_view("a", company, nodes=of("node"), seats=of("seat"), duties=of("worker"), now=NOW)


@pytest.mark.spec("S-212")
def test_a_node_is_shown_with_what_it_says_and_what_it_holds() -> None:
    (node,) = view(lease("node:a", data=SAID), lease("seat:ceo")).nodes

    assert (node.id, node.owner, node.protocol, node.labels, node.expires_in_s) == ("a", "a:1", 4, {"zone": "b"}, 30.0)
    assert (node.seats, node.seats_held, node.in_flight, node.posture, node.mcp) == (1, 1, 2, "serve", [])


@pytest.mark.spec("C-195", "C-196")
def test_what_a_node_does_not_state_is_null_and_never_zero() -> None:
    strange = {"roles": ["seats"], "status": {"in_flight": "many", "draining": 0, "later": {"x": 1}}}
    (node,) = view(lease("node:a", data=strange)).nodes

    assert (node.in_flight, node.draining, node.posture, node.started_at, node.mcp) == (None, None, None, None, None)


def test_a_node_whose_broker_is_a_member_says_how_it_stands_and_another_says_nothing_of_it() -> None:
    status = {**SAID["status"], "member": "unhealthy", "member_error": "JetStream not enabled"}

    ill, none = view(lease("node:a", data={**SAID, "status": status}), lease("node:b", "b", data=SAID)).nodes

    assert (ill.member, ill.member_error) == ("unhealthy", "JetStream not enabled")
    assert (none.member, none.member_error) == (None, None)


@pytest.mark.spec("S-212")
def test_every_seat_is_shown_held_or_not() -> None:
    ceo, cto = view(lease("node:a", data=SAID), lease("seat:ceo")).seats

    assert (ceo.handle, ceo.node, ceo.owner, ceo.epoch, ceo.expires_in_s) == ("ceo", "a", "a:1", 3, 30.0)
    assert ceo.acquired_at == NOW - timedelta(hours=1)
    assert (cto.handle, cto.node, cto.epoch) == ("cto", None, None)


def test_duties_are_shown_with_who_does_them() -> None:
    (duty,) = view(lease("node:a", data=SAID), lease("worker:maintenance", "b", left_s=2700)).duties

    assert (duty.duty, duty.node, duty.expires_in_s) == ("maintenance", "b", 2700.0)


@pytest.mark.parametrize(("owner", "gone"), [("b:1", False), ("b:0", True), ("c:1", True)])
def test_a_duty_of_a_process_that_is_not_present_is_shown_as_a_gone_ones(owner: str, gone: bool) -> None:
    had = replace(lease("worker:maintenance", owner[0], left_s=2700), owner=owner)

    (duty,) = view(lease("node:a", data=SAID), lease("node:b", "b", data=SAID), had).duties

    assert (duty.node, duty.gone) == (owner[0], gone)


def test_a_lease_past_its_end_has_nothing_left() -> None:
    (node,) = view(lease("node:a", left_s=-1, data=SAID)).nodes

    assert node.expires_in_s == 0.0


def test_a_seat_that_no_live_node_may_run_is_named_with_what_it_asks_for() -> None:
    company = (PlacedSeat("ceo"), PlacedSeat("gpu", Placement(labels=(("gpu", "yes"),))))

    (seat,) = view(lease("node:a", data=SAID), company=company).unplaceable

    assert (seat.handle, seat.node, seat.labels) == ("gpu", "", {"gpu": "yes"})


def test_a_role_that_no_live_node_has_is_named() -> None:
    assert view(lease("node:a", data={**SAID, "roles": ["seats", "data"]})).unmanned_roles == ["ingress", "workers"]
