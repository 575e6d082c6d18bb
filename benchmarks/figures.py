"""A measured figure beside its floor and its bound, and how long a run may take to measure it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["FULL", "SMALL", "Figure", "Measurement", "Sizes", "figure", "median"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the results. It is ``ok`` while ``value`` is at most ``bound``; without a bound it always is.

    ``floor`` is what the same work costs without the engine, ``ratio`` the value over it; ``peer`` what it costs with
    another engine. A bound that is a multiple of one of them stands here multiplied out, in the figure's own unit.
    """

    name: str
    value: float
    unit: str
    floor: float | None
    floor_name: str | None
    peer: float | None
    peer_name: str | None
    ratio: float | None
    bound: float | None
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How often each thing is done. Every figure is a median, or a mean over many, of that many.

    ``fleet_pace`` are bounds of ``crewlet.base.limits`` that a fleet's engines have in place of the shipped ones, and
    ``peer_ack_wait_s`` is the peers' in place of the broker's own: so that a small run need not wait for them.
    """

    commands: int
    starts: int
    example_starts: int
    publishes: int
    turns: int
    turn_batches: int
    memory_runs: int
    seats: int
    further_seats: int
    settle_s: float
    warm_up: bool
    slices: int
    drained: int
    crowds: tuple[int, int, int]
    inboxes: int
    inbox_messages: int
    published: int
    hand_overs: int
    mailbox_seats: int
    mailbox_runs: int
    idle_inboxes: int
    idle_s: float
    records: int
    record_reads: int
    tenures: int
    leases_held: int
    renewals: int
    held_seats: int
    held_ttl_s: float
    heartbeats: int
    idle_sweeps: int
    takeovers: int
    takeover_ttl_s: float
    killed_peers: int
    member_kills: int
    member_ttl_s: float
    stopped_seats: int
    survivors: int
    cold_nodes: int
    cold_seats: int
    cold_sweep_s: float
    rate_seats: int
    busy_seats: int
    busy_at_once: int
    busy_turns: int
    busy_s: float
    fleet_pace: Mapping[str, float] = field(default_factory=dict[str, float])
    peer_ack_wait_s: float | None = None


FULL = Sizes(
    commands=15,
    starts=7,
    example_starts=5,
    publishes=500,
    turns=200,
    turn_batches=5,
    memory_runs=3,
    seats=10,
    further_seats=200,
    settle_s=3.0,
    warm_up=True,
    slices=5,
    drained=1280,
    crowds=(1, 300, 3000),
    inboxes=500,
    inbox_messages=12,
    published=2000,
    hand_overs=150,
    mailbox_seats=1000,
    mailbox_runs=3,
    idle_inboxes=1000,
    idle_s=40.0,
    records=10_000,
    record_reads=1000,
    tenures=60,
    leases_held=10_000,
    renewals=4000,
    held_seats=2001,
    held_ttl_s=45.0,
    heartbeats=2,
    idle_sweeps=6,
    takeovers=6,
    takeover_ttl_s=6.0,
    killed_peers=3,
    member_kills=2,
    member_ttl_s=15.0,
    stopped_seats=50,
    survivors=2,
    cold_nodes=4,
    cold_seats=1000,
    cold_sweep_s=2.0,
    rate_seats=64,
    busy_seats=500,
    busy_at_once=32,
    busy_turns=1000,
    busy_s=60.0,
)
SMALL = Sizes(
    commands=1,
    starts=1,
    example_starts=1,
    publishes=10,
    turns=6,
    turn_batches=2,
    memory_runs=1,
    seats=3,
    further_seats=5,
    settle_s=0.2,
    warm_up=False,
    slices=1,
    drained=64,
    crowds=(1, 3, 6),
    inboxes=4,
    inbox_messages=2,
    published=20,
    hand_overs=3,
    mailbox_seats=3,
    mailbox_runs=1,
    idle_inboxes=5,
    idle_s=0.5,
    records=50,
    record_reads=10,
    tenures=4,
    leases_held=40,
    renewals=100,
    held_seats=20,
    held_ttl_s=3.0,
    heartbeats=1,
    idle_sweeps=1,
    takeovers=1,
    takeover_ttl_s=4.0,
    killed_peers=1,
    member_kills=1,
    member_ttl_s=6.0,
    stopped_seats=4,
    survivors=1,
    cold_nodes=2,
    cold_seats=8,
    cold_sweep_s=0.2,
    rate_seats=4,
    busy_seats=4,
    busy_at_once=2,
    busy_turns=20,
    busy_s=0.5,
    fleet_pace={"SEAT_SWEEP_EVERY_S": 0.2, "LEASE_TTL_MIN_S": 1.0, "LEASE_TTL_REPLICATED_MIN_S": 6.0},
    peer_ack_wait_s=1.0,
)
"""As much as it takes to see that everything is measured; its values say nothing."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What yields some figures together: their names, known before anything is measured, and what each is."""

    name: str
    figures: Mapping[str, str]
    measure: Callable[[Sizes], Sequence[Figure]]


def figure(
    name: str,
    value: float,
    unit: str,
    *,
    floor: float | None = None,
    floor_name: str | None = None,
    peer: float | None = None,
    peer_name: str | None = None,
    bound: float | None = None,
) -> Figure:
    """A figure with its ratio and its verdict; a peer with a name and no value is one that is not installed."""
    value = _rounded(value)
    bound = None if bound is None else _rounded(bound)
    return Figure(
        name=name,
        value=value,
        unit=unit,
        floor=None if floor is None else _rounded(floor),
        floor_name=floor_name,
        peer=None if peer is None else _rounded(peer),
        peer_name=peer_name,
        ratio=round(value / floor, 2) if floor else None,
        bound=bound,
        ok=bound is None or value <= bound,
    )


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
