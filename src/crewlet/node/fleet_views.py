"""The fleet as an operator sees it: nodes, who runs which seat, duties, and what nobody can run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from crewlet.coordination import Lease, NodeStatus, SeatPause, resource_member
from crewlet.node.pause_views import PauseView, pause_view
from crewlet.seats import NodeRow, PlacedSeat, node_row, unmanned_roles, unplaceable_seats

__all__ = ["DutyView", "FleetNodeView", "FleetSeatView", "FleetView", "UnplaceableView", "fleet_view"]

_NOBODY_SAID: Final[Mapping[str, NodeStatus]] = MappingProxyType({})
_NOBODY_PAUSED: Final[Mapping[str, SeatPause]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetNodeView:
    """A live node. What it does not state is null, never zero; ``seats`` is counted from the leases themselves.

    ``config_epoch`` is the company document that it runs, ``config_error`` why it runs no later one, empty if it does.
    ``member`` is ``healthy``, ``unhealthy`` or ``unknown``: how its member of the brokers' cluster stands by its own
    word, with ``member_error`` why; null where it has none.
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
    member: str | None
    member_error: str | None
    config_epoch: int | None
    config_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSeatView:
    """An agent seat: its holder, or ``node`` null where nobody holds it just now; and the pause that stands."""

    handle: str
    node: str | None
    owner: str | None
    epoch: int | None
    acquired_at: datetime | None
    expires_in_s: float | None
    paused: PauseView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyView:
    """A singleton duty and the node that has it.

    ``gone``: the process that has it is not present any more (it died, it is ending, or another one runs under its
    name), and a peer takes the duty once its claim has run out.
    """

    duty: str
    node: str
    expires_in_s: float
    gone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UnplaceableView:
    """A seat that no live node may run, and what it asks of one."""

    handle: str
    node: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetView:
    """All of it, as the leases say. Where not ``pauses_known``, the node that was asked does not know of pauses yet."""

    this_node: str
    nodes: Sequence[FleetNodeView]
    seats: Sequence[FleetSeatView]
    duties: Sequence[DutyView]
    unplaceable: Sequence[UnplaceableView]
    unmanned_roles: Sequence[str]
    pauses_known: bool


def fleet_view(
    this_node: str,
    company: Sequence[PlacedSeat],
    *,
    nodes: Collection[Lease],
    seats: Collection[Lease],
    duties: Collection[Lease],
    now: datetime,
    reported: Mapping[str, NodeStatus] = _NOBODY_SAID,
    paused: Mapping[str, SeatPause] | None = _NOBODY_PAUSED,
) -> FleetView:
    """The view at ``now`` (the clock of the leases) of a company's agent seats over the live leases of three kinds.

    ``reported``: what nodes said of the company document that they run. ``paused``: ``None`` where it is not known.
    """
    rows = sorted((node_row(lease) for lease in nodes), key=lambda row: row.node_id)
    holders = {resource_member(lease.resource): lease for lease in seats}
    present = {row.lease.owner for row in rows}
    count = Counter(lease.owner for lease in seats)
    return FleetView(
        this_node=this_node,
        nodes=[_node(row, count[row.lease.owner], now, reported.get(row.node_id)) for row in rows],
        seats=[_seat(seat.handle, holders.get(seat.handle), now, (paused or {}).get(seat.handle)) for seat in company],
        pauses_known=paused is not None,
        duties=sorted((_duty(lease, present, now) for lease in duties), key=lambda view: view.duty),
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
        member=_stated(said, "member", str),
        member_error=_stated(said, "member_error", str),
        config_epoch=None if config is None else config.epoch,
        config_error=None if config is None else config.error,
    )


def _duty(lease: Lease, present: Collection[str], now: datetime) -> DutyView:
    return DutyView(
        duty=resource_member(lease.resource),
        node=lease.preferred,
        expires_in_s=_left(lease, now),
        gone=lease.owner not in present,
    )


def _seat(handle: str, lease: Lease | None, now: datetime, pause: SeatPause | None) -> FleetSeatView:
    return FleetSeatView(
        handle=handle,
        node=None if lease is None else lease.preferred,
        owner=None if lease is None else lease.owner,
        epoch=None if lease is None else lease.epoch,
        acquired_at=None if lease is None else lease.acquired_at,
        expires_in_s=None if lease is None else _left(lease, now),
        paused=None if pause is None else pause_view(pause),
    )


def _unplaceable(seat: PlacedSeat) -> UnplaceableView:
    return UnplaceableView(handle=seat.handle, node=seat.placement.node, labels=dict(seat.placement.labels))


def _left(lease: Lease, now: datetime) -> float:
    return round(max((lease.expires_at - now).total_seconds(), 0.0), 1)


def _stated(said: Mapping[str, Any], name: str, kind: type[Any]) -> Any:  # noqa: ANN401 - of the kind, or nothing
    value = said.get(name)
    is_stated = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    return value if is_stated else None
