"""Where seats belong, as pure arithmetic over the live nodes: shares, what to claim, what to give back (S1).

Every node does the same sums over the same presence rows and comes to terms with its peers through the leases alone.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from crewlet.base import limits

__all__ = [
    "ANYWHERE",
    "FleetNode",
    "Pass",
    "PlacedSeat",
    "Placement",
    "allowances",
    "groups_of",
    "plan_pass",
    "unplaceable_seats",
]


@dataclass(frozen=True, slots=True, order=True)
class Placement:
    """What a seat asks of the node that runs it: a node id, labels, both or neither; it only narrows."""

    node: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    def fits(self, node: FleetNode) -> bool:
        """Whether ``node`` may run such a seat; strings are compared exactly."""
        named = not self.node or self.node == node.node_id
        return named and all(node.labels.get(key) == value for key, value in self.labels)


ANYWHERE = Placement()


@dataclass(frozen=True, slots=True)
class PlacedSeat:
    """An agent seat of the company and where it may run."""

    handle: str
    placement: Placement = ANYWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetNode:
    """A live node as its presence says.

    ``places_seats``: it has the role of running them. ``withdrawn``: it gives every seat back for now. Neither kind
    counts in a share. ``seats_held``: seats it runs, or could not prove to have let go, that some live node may run.
    """

    node_id: str
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    places_seats: bool = True
    withdrawn: bool = False
    seats_held: int = 0

    @property
    def counts(self) -> bool:
        """Whether seats are divided over it."""
        return self.places_seats and not self.withdrawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one placement pass of a node would do.

    ``claims``: group by group in the order to try, each with the room there is in it; ``limits.SEAT_CLAIMS_PER_SWEEP``
    bounds their number over all groups. ``releases``: surplus to give back, at most ``limits.SEAT_RELEASES_PER_SWEEP``;
    all of it where the node does not count.
    ``misplaced``: held seats that this node may not run (any more); ``gone``: held, and no seat of the company.
    ``unplaceable``: seats that no live node may run. ``fleet_full``: by the nodes' own counts nothing is free.
    """

    claims: tuple[tuple[int, tuple[str, ...]], ...]
    releases: tuple[str, ...]
    misplaced: tuple[str, ...]
    gone: tuple[str, ...]
    unplaceable: tuple[PlacedSeat, ...]
    fleet_full: bool


def groups_of(seats: Iterable[PlacedSeat]) -> dict[Placement, list[str]]:
    """The seats by the placement that they share, in the company's order."""
    groups: dict[Placement, list[str]] = {}
    for seat in seats:
        groups.setdefault(seat.placement, []).append(seat.handle)
    return groups


def allowances(
    groups: Mapping[Placement, Sequence[str]], nodes: Collection[FleetNode], me: FleetNode, *, stuck: int = 0
) -> dict[Placement, int]:
    """How many seats of each group ``me`` may hold: its share, less what ``stuck`` seats take (S-022, S-029).

    A share is the group's size over the live nodes that match it, rounded up, so that the shares cover the group.
    Stuck seats are charged first; what is left goes to the groups with the fewest matching nodes first.
    """
    if not me.counts:
        return dict.fromkeys(groups, 0)
    shares = {
        placement: _ceil(len(handles), _matching(placement, nodes)) if placement.fits(me) else 0
        for placement, handles in groups.items()
    }
    left = max(sum(shares.values()) - stuck, 0)
    allowed: dict[Placement, int] = {}
    for placement in _most_constrained_first(groups, nodes):
        allowed[placement] = min(shares[placement], left)
        left -= allowed[placement]
    return allowed


def plan_pass(
    seats: Sequence[PlacedSeat],
    nodes: Collection[FleetNode],
    me: FleetNode,
    *,
    held: Collection[str],
    stuck: Collection[str],
    hints: Mapping[str, str],
) -> Pass:
    """What ``me`` (one of ``nodes``) should claim and give back, holding ``held`` and not getting rid of ``stuck``.

    ``hints`` say which node had a seat last. Seats of one group are tried in an order of each node's own, those that
    it had before first, so that nodes which start together do not all try the same seat (S-021).
    """
    placement_of = {seat.handle: seat.placement for seat in seats}
    groups = groups_of(seats)
    order = _most_constrained_first(groups, nodes)
    allowed = allowances(groups, nodes, me, stuck=len(stuck))
    mine = [handle for handle in held if handle in placement_of and placement_of[handle].fits(me)]
    count = Counter(placement_of[handle] for handle in mine)
    taken = {*held, *stuck}
    unplaceable = unplaceable_seats(seats, nodes)
    full = sum(node.seats_held for node in nodes) >= len(seats) - len(unplaceable)
    claims = [
        (allowed[placement] - count[placement], _in_own_order(groups[placement], me, taken, hints))
        for placement in order
        if allowed[placement] > count[placement]
    ]
    return Pass(
        claims=() if full else tuple((room, handles) for room, handles in claims if handles),
        releases=_surplus(reversed(order), allowed, groups, frozenset(mine)) if me.counts else tuple(mine),
        misplaced=tuple(handle for handle in held if handle in placement_of and not placement_of[handle].fits(me)),
        gone=tuple(handle for handle in held if handle not in placement_of),
        unplaceable=unplaceable,
        fleet_full=full,
    )


def unplaceable_seats(seats: Iterable[PlacedSeat], nodes: Collection[FleetNode]) -> tuple[PlacedSeat, ...]:
    """The seats that no live node may run (S-032)."""
    return tuple(seat for seat in seats if _matching(seat.placement, nodes) == 0)


def _surplus(
    order: Iterable[Placement],
    allowed: Mapping[Placement, int],
    groups: Mapping[Placement, Sequence[str]],
    mine: frozenset[str],
) -> tuple[str, ...]:
    """What is held above the allowances, the least constrained groups first (S-023, S-024)."""
    surplus: list[str] = []
    for placement in order:
        in_group = [handle for handle in groups[placement] if handle in mine]
        surplus.extend(in_group[allowed[placement] :])
    return tuple(surplus[: limits.SEAT_RELEASES_PER_SWEEP])


def _in_own_order(
    handles: Sequence[str], me: FleetNode, taken: Collection[str], hints: Mapping[str, str]
) -> tuple[str, ...]:
    free = [handle for handle in handles if handle not in taken]
    return tuple(sorted(free, key=lambda handle: (hints.get(handle) != me.node_id, _scattered(me.node_id, handle))))


def _scattered(node_id: str, handle: str) -> bytes:
    return hashlib.sha256(f"{node_id}\0{handle}".encode()).digest()


def _most_constrained_first(groups: Iterable[Placement], nodes: Collection[FleetNode]) -> list[Placement]:
    return sorted(groups, key=lambda placement: (_matching(placement, nodes), placement == ANYWHERE, placement))


def _matching(placement: Placement, nodes: Collection[FleetNode]) -> int:
    return sum(node.counts and placement.fits(node) for node in nodes)


def _ceil(seats: int, nodes: int) -> int:
    return -(-seats // nodes)
