"""The fleet as an operator sees it: nodes, who runs which seat, duties, and what nobody can run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from crewlet.coordination import Lease, NodeStatus, resource_member
from crewlet.seats import NodeRow, PlacedSeat, node_row, unmanned_roles, unplaceable_seats

__all__ = ["DutyView", "FleetNodeView", "FleetSeatView", "FleetView", "UnplaceableView", "fleet_view"]

_NOBODY_SAID: Final[Mapping[str, NodeStatus]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetNodeView:
    """A live node. What it does not state is null, never zero; ``seats`` is counted from the leases themselves.

    ``config_epoch`` is the company document that it runs, ``config_error`` why it runs no later one, empty if it does.
    """

    id: str
    owner: str
    roles: Sequence[str]
    labels: Mapping[str, str]
    protocol: int
    seats: int
    seats_held: int
    seats_withdrawn: bool
    expires_in_s: float
    in_flight: int | None
    draining: bool | None
    posture: str | None
    started_at: str | None
    version: str | None
    broker: str | None
    mcp: Sequence[Mapping[str, Any]] | None
    config_epoch: int | None
    config_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSeatView:
    """An agent seat: its holder, or ``node`` null where nobody holds it just now."""

    handle: str
    node: str | None
    owner: str | None
    epoch: int | None
    acquired_at: datetime | None
    expires_in_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyView:
    """A singleton duty and the node that does it."""

    duty: str
    node: str
    expires_in_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UnplaceableView:
    """A seat that no live node may run, and what it asks of one."""

    handle: str
    node: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetView:
    """All of it, as the leases say."""

    this_node: str
    nodes: Sequence[FleetNodeView]
    seats: Sequence[FleetSeatView]
    duties: Sequence[DutyView]
    unplaceable: Sequence[UnplaceableView]
    unmanned_roles: Sequence[str]


def fleet_view(
    this_node: str,
    company: Sequence[PlacedSeat],
    *,
    nodes: Collection[Lease],
    seats: Collection[Lease],
    duties: Collection[Lease],
    now: datetime,
    reported: Mapping[str, NodeStatus] = _NOBODY_SAID,
) -> FleetView:
    """The view at ``now`` (the clock of the leases) of a company's agent seats over the live leases of three kinds.

    ``reported``: what nodes said of the company document that they run.
    """
    rows = sorted((node_row(lease) for lease in nodes), key=lambda row: row.node_id)
    holders = {resource_member(lease.resource): lease for lease in seats}
    count = Counter(lease.owner for lease in seats)
    return FleetView(
        this_node=this_node,
        nodes=[_node(row, count[row.lease.owner], now, reported.get(row.node_id)) for row in rows],
        seats=[_seat(seat.handle, holders.get(seat.handle), now) for seat in company],
        duties=sorted(
            (
                DutyView(duty=resource_member(each.resource), node=each.preferred, expires_in_s=_left(each, now))
                for each in duties
            ),
            key=lambda view: view.duty,
        ),
        unplaceable=[_unplaceable(seat) for seat in unplaceable_seats(company, [row.as_fleet_node() for row in rows])],
        unmanned_roles=[*unmanned_roles(rows)],
    )


def _node(row: NodeRow, seats: int, now: datetime, config: NodeStatus | None) -> FleetNodeView:
    said = row.status
    return FleetNodeView(
        id=row.node_id,
        owner=row.lease.owner,
        roles=row.roles,
        labels=row.labels,
        protocol=row.lease.protocol,
        seats=seats,
        seats_held=row.seats_held,
        seats_withdrawn=row.withdrawn,
        expires_in_s=_left(row.lease, now),
        in_flight=_stated(said, "in_flight", int),
        draining=_stated(said, "draining", bool),
        posture=_stated(said, "posture", str),
        started_at=_stated(said, "started_at", str),
        version=_stated(said, "version", str),
        broker=_stated(said, "broker", str),
        mcp=_stated(said, "mcp", list),
        config_epoch=None if config is None else config.epoch,
        config_error=None if config is None else config.error,
    )


def _seat(handle: str, lease: Lease | None, now: datetime) -> FleetSeatView:
    if lease is None:
        return FleetSeatView(handle=handle, node=None, owner=None, epoch=None, acquired_at=None, expires_in_s=None)
    return FleetSeatView(
        handle=handle,
        node=lease.preferred,
        owner=lease.owner,
        epoch=lease.epoch,
        acquired_at=lease.acquired_at,
        expires_in_s=_left(lease, now),
    )


def _unplaceable(seat: PlacedSeat) -> UnplaceableView:
    return UnplaceableView(handle=seat.handle, node=seat.placement.node, labels=dict(seat.placement.labels))


def _left(lease: Lease, now: datetime) -> float:
    return round(max((lease.expires_at - now).total_seconds(), 0.0), 1)


def _stated(said: Mapping[str, Any], name: str, kind: type[Any]) -> Any:  # noqa: ANN401 - of the kind, or nothing
    value = said.get(name)
    is_stated = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    return value if is_stated else None
