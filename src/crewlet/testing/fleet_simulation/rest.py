"""What a simulated fleet has to look like once nothing befalls it any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from crewlet.base import limits
from crewlet.coordination import LEASE_PROTOCOL
from crewlet.seats import PlacedSeat, Placement
from crewlet.seats.placement import FleetNode, groups_of
from crewlet.testing.fleet_simulation.moves import SharedSeats
from crewlet.testing.fleet_simulation.node import SimulatedNode
from crewlet.testing.fleet_simulation.reports import Reports
from crewlet.testing.fleet_simulation.rules import Rule, named
from crewlet.testing.fleet_simulation.world import FleetWorld

__all__ = ["FleetAtRest"]

_QUIET_S = 4 * limits.SEAT_SWEEP_EVERY_S + 1.0
_STILL_S = 60.0
_LATELY_S = 2 * limits.SEAT_SWEEP_EVERY_S + 1.0

Watch = Callable[[float], Coroutine[Any, Any, None]]
"""Lets so many seconds pass."""


class FleetAtRest:
    """The rules of a fleet at rest. ``watch`` lets time pass."""

    def __init__(self, world: FleetWorld, reports: Reports) -> None:
        self._world = world
        self._reports = reports

    async def come_to_rest(self, watch: Watch, *, at_least_s: float = 0.0) -> float:
        """Wait until nothing moves any more; returns after how many seconds that was.

        It may be quiet for long while a seat that is given back waits for its turn to end: that is no rest.
        """
        began_s = self._world.clock.elapsed_s()
        await watch(at_least_s + _QUIET_S)
        while self._lets_go() or self._world.changed_at_s > self._world.clock.elapsed_s() - _QUIET_S:
            if self._world.clock.elapsed_s() - began_s > self._world.plan.rest_max_s:
                self._found("rest", f"seats still move after {self._world.plan.rest_max_s:.0f} s")
                break
            await watch(limits.SEAT_SWEEP_EVERY_S)
        return max(self._world.changed_at_s - began_s, 0.0)

    async def settle(self, watch: Watch) -> float:
        """The same, where leases may have to lapse first; then everything is as it should be, and stays so."""
        rested_s = await self.come_to_rest(watch, at_least_s=self._world.plan.ttl_s)
        self._check_covered()
        self._check_shares()
        before = self._holders()
        await watch(_STILL_S)
        moved = [handle for handle, holder in self._holders().items() if before.get(handle) != holder]
        if moved or len(before) != len(self._holders()):
            self._found("still", f"{named(moved) or 'a seat'} moved after the fleet had come to rest")
        return rested_s

    def groups(self) -> list[SharedSeats]:
        """The seats by placement, over the nodes that there are."""
        by_placement = groups_of(self._world.company)
        return [
            SharedSeats(handles, sum(_fits(group, node) for node in self._world.serving()))
            for group, handles in by_placement.items()
        ]

    def _lets_go(self) -> bool:
        """Whether a seat is attached where no turn may begin on it any more, or not yet."""
        return any({*node.held} - {*node.host.held()} for node in self._world.serving())

    def _check_covered(self) -> None:
        holders = self._holders()
        missing = [seat for seat in self._world.company if seat.handle not in holders]
        if not missing:
            return
        fleet = {node.owner: _as_placed(node) for node in self._world.serving()}
        homeless = [seat for seat in missing if not any(seat.placement.fits(each) for each in fleet.values())]
        self._check_homeless(homeless)
        waiting = [seat for seat in missing if seat not in homeless]
        if waiting and not self._is_gate_told({seat.placement for seat in waiting}):
            self._found("covered", f"nobody holds {named(seat.handle for seat in waiting)} and no node says why")

    def _check_homeless(self, homeless: list[PlacedSeat]) -> None:
        if not homeless:
            return
        for node in self._world.serving():
            silent = [seat.handle for seat in homeless if seat not in node.host.unplaceable()]
            if node.protocol == LEASE_PROTOCOL and silent:
                self._found("covered", f"{node.owner} does not know that no node may run {named(silent)}")
        told = [self._reports.said(node.owner, "seats_unplaceable") for node in self._world.serving()]
        lines = {handle for said in told if said is not None for handle in said.fields["seats"]}
        if unsaid := [seat.handle for seat in homeless if seat.handle not in lines]:
            self._found("covered", f"no node may run {named(unsaid)} and none says so")

    def _is_gate_told(self, groups: set[Placement]) -> bool:
        """Whether an older build stands in the way, and a node that would claim has said so lately.

        One that knows no placement may hold what others have their share for and leave theirs: then nobody would claim.
        """
        if not self._world.lower_leases():
            return False
        shares = self._shares()
        ours = [node for node in self._world.serving() if node.protocol == LEASE_PROTOCOL]
        with_room = [
            node
            for node in ours
            if any(self._held(node)[group] < shares[group] for group in groups if _fits(group, node))
        ]
        since_s = self._world.clock.elapsed_s() - _LATELY_S
        told = [self._reports.said(node.owner, "seat_claims_blocked_by_older_protocol") for node in with_room]
        return not told or any(said is not None and said.at_s >= since_s for said in told)

    def _check_shares(self) -> None:
        serving = self._world.serving()
        if any(node.protocol < LEASE_PROTOCOL for node in serving):
            return
        shares = self._shares()
        for node in serving:
            for group, count in self._held(node).items():
                if count > shares[group]:
                    self._found(
                        "share", f"{node.owner} holds {count} seats of a group of which {shares[group]} are its own"
                    )

    def _shares(self) -> dict[Placement, int]:
        """Of each group, how many seats are for each node that may run them."""
        sizes = Counter(seat.placement for seat in self._world.company)
        homes = {group: sum(_fits(group, node) for node in self._world.serving()) for group in sizes}
        return {group: -(-size // max(homes[group], 1)) for group, size in sizes.items()}

    def _held(self, node: SimulatedNode) -> Counter[Placement]:
        return Counter(self._world.placement_of[handle] for handle in node.host.held())

    def _holders(self) -> dict[str, tuple[str, int | None]]:
        return {
            handle: (node.owner, node.host.epoch_of(handle))
            for node in self._world.serving()
            for handle in node.host.held()
        }

    def _found(self, rule: Rule, what: str) -> None:
        self._world.findings.add(rule, what)


def _fits(group: Placement, node: SimulatedNode) -> bool:
    return group.fits(_as_placed(node))


def _as_placed(node: SimulatedNode) -> FleetNode:
    return FleetNode(node_id=node.config.node_id, labels=node.config.labels)
