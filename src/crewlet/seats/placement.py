"""Where seats belong, as pure arithmetic over the live nodes: shares, what to claim, what to give back (S1).

Every node does the same sums over the same presence rows and comes to terms with its peers through the leases alone.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from crewlet.base import limits

__all__ = [
    "ANYWHERE",
    "FleetNode",
    "Pass",
    "PlacedCompany",
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


@dataclass(frozen=True, slots=True)
class PlacedCompany:
    """The company's seats as one node sees them: sorted out once, since every pass asks.

    ``groups``: the seats that share a placement, in an order of the node's own in which it tries them, so that nodes
    which start together do not all try the same seat.
    """

    seats: tuple[PlacedSeat, ...]
    groups: Mapping[Placement, Sequence[str]]
    placement_of: Mapping[str, Placement]

    @classmethod
    def of(cls, seats: Iterable[PlacedSeat], node_id: str) -> PlacedCompany:
        """These seats, for the node of this id."""
        every, scattered = tuple(seats), _scattered(node_id)
        groups = {placement: sorted(handles, key=scattered) for placement, handles in groups_of(every).items()}
        return cls(every, groups, {seat.handle: seat.placement for seat in every})


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
    last: Placement | None = None
    handles: list[str] = []
    for seat in seats:
        # Most neighbours ask for the very same: what a placement hashes to is worked out at each look.
        if seat.placement is not last:
            last, handles = seat.placement, groups.setdefault(seat.placement, [])
        handles.append(seat.handle)
    return groups


def allowances(
    groups: Mapping[Placement, Sequence[str]], nodes: Collection[FleetNode], me: FleetNode, *, stuck: int = 0
) -> dict[Placement, int]:
    """How many seats of each group ``me`` may hold: its share, less what ``stuck`` seats take (S-022, S-029).

    A share is the group's size over the live nodes that match it, rounded up, so that the shares cover the group.
    Stuck seats are charged first; what is left goes to the groups with the fewest matching nodes first.
    """
    return _allowances(groups, _homes(groups, nodes), me, stuck=stuck)


def plan_pass(
    company: PlacedCompany,
    nodes: Collection[FleetNode],
    me: FleetNode,
    *,
    held: Collection[str],
    stuck: Collection[str],
    hints: Mapping[str, str],
) -> Pass:
    """What ``me`` (one of ``nodes``) should claim and give back, holding ``held`` and not getting rid of ``stuck``.

    ``held``: in the order in which they were claimed. What came last goes first: a seat that a restarting node left
    behind returns to it, and no other has to move.
    ``hints`` say which node had a seat last: of one group, those that it had before are tried first (S-021).
    """
    placement_of, groups = company.placement_of, company.groups
    homes = _homes(groups, nodes)
    order = _most_constrained_first(homes)
    allowed = _allowances(groups, homes, me, stuck=len(stuck))
    mine = groups_of(PlacedSeat(handle, placement_of[handle]) for handle in held if handle in placement_of)
    mine = {placement: handles for placement, handles in mine.items() if placement.fits(me)}
    count = {placement: len(mine.get(placement, ())) for placement in groups}
    taken = {*held, *stuck}
    unplaceable = _without_home(company.seats, homes)
    full = sum(node.seats_held for node in nodes) >= len(company.seats) - len(unplaceable)
    claims = [
        (allowed[placement] - count[placement], _free(groups[placement], me, taken, hints))
        for placement in order
        if not full and allowed[placement] > count[placement]
    ]
    return Pass(
        claims=tuple((room, handles) for room, handles in claims if handles),
        releases=tuple(_surplus(reversed(order), allowed, mine)) if me.counts else tuple(chain(*mine.values())),
        misplaced=tuple(handle for handle in held if handle in placement_of and not placement_of[handle].fits(me)),
        gone=tuple(handle for handle in held if handle not in placement_of),
        unplaceable=unplaceable,
        fleet_full=full,
    )


def unplaceable_seats(seats: Sequence[PlacedSeat], nodes: Collection[FleetNode]) -> tuple[PlacedSeat, ...]:
    """The seats that no live node may run (S-032)."""
    return _without_home(seats, _homes((seat.placement for seat in seats), nodes))


def _homes(placements: Iterable[Placement], nodes: Collection[FleetNode]) -> dict[Placement, int]:
    """For each placement the number of live nodes that may run its seats: counted once, whatever the seats' number."""
    counting = [node for node in nodes if node.counts]
    return {placement: sum(placement.fits(node) for node in counting) for placement in {*placements}}


def _without_home(seats: Iterable[PlacedSeat], homes: Mapping[Placement, int]) -> tuple[PlacedSeat, ...]:
    lonely = {placement for placement, nodes in homes.items() if not nodes}
    return tuple(seat for seat in seats if seat.placement in lonely) if lonely else ()


def _allowances(
    groups: Mapping[Placement, Sequence[str]], homes: Mapping[Placement, int], me: FleetNode, *, stuck: int
) -> dict[Placement, int]:
    if not me.counts:
        return dict.fromkeys(groups, 0)
    shares = {
        placement: _ceil(len(handles), homes[placement]) if placement.fits(me) else 0
        for placement, handles in groups.items()
    }
    left = max(sum(shares.values()) - stuck, 0)
    allowed: dict[Placement, int] = {}
    for placement in _most_constrained_first(homes):
        allowed[placement] = min(shares[placement], left)
        left -= allowed[placement]
    return allowed


def _surplus(
    order: Iterable[Placement], allowed: Mapping[Placement, int], mine: Mapping[Placement, Sequence[str]]
) -> Iterable[str]:
    """What is held above the allowances, the least constrained groups first (S-023, S-024)."""
    surplus = (handle for placement in order for handle in reversed(mine.get(placement, ())[allowed[placement] :]))
    return islice(surplus, limits.SEAT_RELEASES_PER_SWEEP)


def _free(handles: Sequence[str], me: FleetNode, taken: Collection[str], hints: Mapping[str, str]) -> tuple[str, ...]:
    free = [handle for handle in handles if handle not in taken]
    ours = {handle for handle, node in hints.items() if node == me.node_id}
    if not ours:
        return tuple(free)
    return (*[handle for handle in free if handle in ours], *[handle for handle in free if handle not in ours])


def _scattered(node_id: str) -> Callable[[str], int]:
    """An order of all seats that is the node's own, at the price of a checksum each: there may be ten thousand."""
    factor = int.from_bytes(hashlib.sha256(node_id.encode()).digest()[:4]) | 1
    return lambda handle: zlib.crc32(handle.encode()) * factor & 0xFFFF_FFFF


def _most_constrained_first(homes: Mapping[Placement, int]) -> list[Placement]:
    return sorted(homes, key=lambda placement: (homes[placement], placement == ANYWHERE, placement))


def _ceil(seats: int, nodes: int) -> int:
    return -(-seats // nodes)
