"""The nodes of a simulated fleet and the store they share; what happens to them is somebody else's choice."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from functools import partial
from random import Random

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.coordination import LEASE_PROTOCOL, Lease, seat_resource
from crewlet.coordination.lease_names import lease_key
from crewlet.coordination.lease_record import StoredLease, stored_lease
from crewlet.coordination.slots import DUTIES, EPOCHS, leases_slot
from crewlet.seats import HostConfig, PlacedSeat
from crewlet.testing.fleet_simulation.clocks import NodeClock
from crewlet.testing.fleet_simulation.lower_writes import LowerWrites
from crewlet.testing.fleet_simulation.node import SimulatedNode
from crewlet.testing.fleet_simulation.plan import FleetPlan
from crewlet.testing.fleet_simulation.rules import Findings, ToolCalls
from crewlet.testing.ids import SeededIds
from crewlet.testing.virtual_time import VirtualClock

__all__ = ["FleetWorld"]

_SHED_EARLY_S = 1.0


class FleetWorld:
    """The store, every node there ever was, and who has which seat attached: looked at whenever that changes."""

    def __init__(self, plan: FleetPlan, seed: int) -> None:
        self.plan = plan
        self.clock = VirtualClock()
        self.company = plan.company()
        self.placement_of = {seat.handle: seat.placement for seat in self.company}
        self.chance = Random(f"world {seed}")
        self.findings = Findings(self.clock.elapsed_s)
        self.calls = ToolCalls(self.findings)
        self.nodes: list[SimulatedNode] = []
        self.attachments: dict[str, list[SimulatedNode]] = {}
        self.last_holder: dict[str, str] = {}
        self.moves: Counter[str] = Counter()
        self.changed_at_s = 0.0
        self._contested: dict[str, None] = {}
        self._old: list[SimulatedNode] = []
        self._lower = LowerWrites()
        self._seed = seed
        self._buckets = [MemoryBucket(slot, self.clock) for slot in (leases_slot(plan.ttl_s), DUTIES, EPOCHS)]

    @property
    def leases(self) -> MemoryBucket:
        """What the store holds of seats and nodes."""
        return self._buckets[0]

    def serving(self) -> list[SimulatedNode]:
        """The nodes that run and are to go on running."""
        return [node for node in self.nodes if node.serves]

    def store_down(self, *, down: bool) -> None:
        """Whether nobody reaches the store."""
        for bucket in self._buckets:
            bucket.cut = down

    def start(self, number: int, *, protocol: int = LEASE_PROTOCOL) -> asyncio.Task[None]:
        """Start the process of node ``number``, under an incarnation of its own; the task is its first pass.

        An older build knows no placement.
        """
        name, owner = f"n{number}", f"n{number}:{len(self.nodes)}"
        borne = limits.STORE_CLOCK_DRIFT if self.plan.drift is None else self.plan.drift
        drift = self.chance.uniform(-borne, borne)
        clock = NodeClock(self.clock, skew_s=self.chance.choice((0.0, -7200.0, 3600.0)), rate=1.0 + drift)
        stores = [MemoryRecordStore(bucket) for bucket in self._buckets]
        for store in stores:
            store.link.watch_delay_s = self.chance.choice((0.0, 0.0, 0.05))
        node = SimulatedNode(
            number,
            HostConfig(owner=owner, node_id=name, labels=self.plan.labels(number), ttl_s=self.plan.ttl_s),
            stores=stores,
            clock=clock,
            ids=SeededIds(self._seed * 100_000 + len(self.nodes)),
            seats=self,
            protocol=protocol,
        )
        self.nodes.append(node)
        if protocol < LEASE_PROTOCOL:
            if not self._old:
                self.leases.attach(self._lower)
            self._old.append(node)
            return node.process.run(node.host.start(PlacedSeat(seat.handle) for seat in self.company))
        return node.process.run(node.host.start(self.company))

    def kill(self, node: SimulatedNode) -> None:
        """The process is gone: it reaches nothing and takes no other step, for good."""
        node.dead = True
        node.cut(off=True)
        node.process.stop()
        for handle in node.held:
            self.attachments[handle].remove(node)
            self._touched()

    def leave(self, node: SimulatedNode) -> asyncio.Task[None]:
        """The process ends as it should."""
        node.leaving = True
        ended = node.process.run(node.leave())
        ended.add_done_callback(lambda _: self._left(node))
        return ended

    def wake(self, node: SimulatedNode) -> None:
        """A process that stood still goes on; what it believes first is looked at."""
        if node.dead:
            return
        node.clock.stood_still_s += self.clock.elapsed_s() - node.process.stopped_at_s
        node.process.wake()
        for handle in node.held:
            self._look_at(handle)

    def mail(self) -> None:
        """Some seat is sent something: whoever is attached begins a turn where its host lets it."""
        handle = self.chance.choice(self.company).handle
        for node in self.attachments.get(handle, ()):
            if not node.process.stands_still:
                node.process.act(partial(node.begin_turn, handle, self.chance))

    def look(self) -> None:
        """Hold every seat that more than one node has attached to the rule of one holder."""
        for handle in [*self._contested]:
            if len(self.attachments[handle]) > 1:
                self._look_at(handle)
            else:
                del self._contested[handle]

    def attached(self, node: SimulatedNode, handle: str, lease: Lease) -> None:
        """A node has taken the seat's inbox."""
        self.calls.granted(handle, lease.epoch, node.owner)
        self._check_gate(node, handle, lease)
        holders = self.attachments.setdefault(handle, [])
        if node not in holders:
            holders.append(node)
        if len(holders) > 1:
            self._contested[handle] = None
        if self.last_holder.get(handle) != node.config.node_id:
            self.moves[handle] += handle in self.last_holder
            self.last_holder[handle] = node.config.node_id
        self._touched()

    def admits(self, node: SimulatedNode, handle: str) -> None:
        """The seat admits turns on a node."""
        del node
        self._look_at(handle)

    def lost(self, node: SimulatedNode, handle: str) -> None:
        """A node tears a seat down as lost: then its lease has lapsed, or is about to."""
        standing = self.lease_of(handle)
        if standing is None or standing.said.owner != node.owner or handle in node.host.unproven():
            return
        left = standing.ends_at - self.clock.now()
        if left > timedelta(seconds=_SHED_EARLY_S + 2 * self.plan.ttl_s * limits.STORE_CLOCK_DRIFT):
            self.findings.add("kept", f"{node.owner} sheds {handle}, whose lease has {left.total_seconds():.0f} s left")

    def detached(self, node: SimulatedNode, handle: str) -> None:
        """A node has let go of the seat's inbox."""
        if node in self.attachments.get(handle, ()):
            self.attachments[handle].remove(node)
            self._touched()

    def called(self, node: SimulatedNode, handle: str, epoch: int) -> None:
        """A turn called a tool."""
        self.calls.made(handle, epoch, node.owner)

    def lease_of(self, handle: str) -> StoredLease | None:
        """The record of the seat's lease as the store holds it, lapsed or not."""
        record = self.leases.live(lease_key(seat_resource(handle)))
        return None if record is None else stored_lease(record)

    def lower_leases(self) -> list[StoredLease]:
        """The live leases of seats and nodes that an older build holds."""
        if not self._old:
            return []
        found = [stored_lease(record) for record in self.leases.all_live([*self._lower.keys])]
        now = self.clock.now()
        return [each for each in found if each.said.protocol < LEASE_PROTOCOL and each.ends_at > now]

    async def close(self) -> None:
        """End every process that is left."""
        self.store_down(down=True)
        for node in self.nodes:
            await node.process.end()

    def _check_gate(self, node: SimulatedNode, handle: str, lease: Lease) -> None:
        if node.protocol < LEASE_PROTOCOL or not self._old:
            return
        for lower in self.lower_leases():
            # A claim judges once its first write has landed, which is when its tenure counts from.
            if lower.said.epoch and lower.as_lease().acquired_at < lease.acquired_at:
                what = f"{node.owner} was granted {handle} beside {lower.said.resource} of {lower.said.owner}"
                self.findings.add("gate", f"{what} at protocol {lower.said.protocol}")

    def _look_at(self, handle: str) -> None:
        holders = self.attachments.get(handle, ())
        if len(holders) > 1:
            admitting = [node.owner for node in holders if _admits(node, handle)]
            if len(admitting) > 1:
                self.findings.add("one holder", f"{handle} admits turns on {' and '.join(admitting)} at once")

    def _left(self, node: SimulatedNode) -> None:
        node.dead = True
        for handle in node.held:
            self.detached(node, handle)

    def _touched(self) -> None:
        self.changed_at_s = self.clock.elapsed_s()


def _admits(node: SimulatedNode, handle: str) -> bool:
    return not node.process.stands_still and node.host.may_start(handle) is not None
