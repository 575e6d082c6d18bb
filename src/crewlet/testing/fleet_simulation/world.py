"""The nodes of a simulated fleet and the store they share; what happens to them is somebody else's choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base.clock import Clock
from crewlet.coordination import LEASE_PROTOCOL, KvLeases, Lease
from crewlet.coordination.slots import DUTIES, EPOCHS, leases_slot
from crewlet.seats import Host, HostConfig, PlacedSeat, Placement, ReleaseMode
from crewlet.testing.ids import SeededIds
from crewlet.testing.virtual_time import VirtualClock

__all__ = ["FleetPlan", "FleetWorld", "SimulatedNode"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """How large the fleet is; ``pinned`` seats ask for a label that every third node carries."""

    nodes: int = 8
    seats: int = 80
    pinned: int = 6
    ttl_s: float = 45.0

    def company(self) -> list[PlacedSeat]:
        """The seats, those that are pinned last."""
        special = Placement(labels=(("zone", "special"),))
        free = self.seats - self.pinned
        return [PlacedSeat(f"s{number}", special if number >= free else Placement()) for number in range(self.seats)]


class SkewedClock:
    """A node's own clock: wrong by a fixed time, which nothing about leases may notice."""

    def __init__(self, clock: Clock, skew_s: float) -> None:
        self._clock = clock
        self._skew = timedelta(seconds=skew_s)

    def now(self) -> datetime:
        """What this node takes for the time."""
        return self._clock.now() + self._skew

    def elapsed_s(self) -> float:
        """Seconds that pass as they do everywhere."""
        return self._clock.elapsed_s()


@dataclass
class SimulatedNode:
    """One process of the fleet. ``dead``: it reaches nothing any more, and what it still believes is looked at."""

    name: str
    owner: str
    leases: KvLeases
    stores: Sequence[MemoryRecordStore]
    host: Host = field(init=False)
    grants: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    attached: set[str] = field(default_factory=set[str])
    dead: bool = False

    async def on_acquire(self, handle: str, lease: Lease) -> None:
        """Establish at once."""
        self.grants.append((handle, lease.epoch))
        self.attached.add(handle)

    def on_established(self, handle: str) -> None:
        """Nothing waits for it."""

    async def on_release(self, handle: str, mode: ReleaseMode) -> None:
        """Let go at once."""
        del mode
        self.attached.discard(handle)

    async def on_unproven(self, handle: str) -> None:
        """Admission looks at the host itself."""

    async def on_proven(self, handle: str) -> None:
        """The same."""

    def cut(self, *, off: bool) -> None:
        """Whether this node reaches the store."""
        for store in self.stores:
            store.link.cut = off


class FleetWorld:
    """The store and every node there ever was, by owner."""

    def __init__(self, plan: FleetPlan, seed: int) -> None:
        self.plan = plan
        self.clock = VirtualClock()
        self.nodes: dict[str, SimulatedNode] = {}
        self.moves: dict[str, int] = {}
        self._seed = seed
        self._company = plan.company()
        self._buckets = [MemoryBucket(slot, self.clock) for slot in (leases_slot(plan.ttl_s), DUTIES, EPOCHS)]

    @property
    def company(self) -> list[PlacedSeat]:
        """The seats of the company."""
        return self._company

    def alive(self) -> list[SimulatedNode]:
        """The nodes that run and reach the store, or will again."""
        return [node for node in self.nodes.values() if not node.dead]

    def store_down(self, *, down: bool) -> None:
        """Whether nobody reaches the store."""
        for bucket in self._buckets:
            bucket.cut = down

    async def start(self, number: int, *, skew_s: float = 0.0, protocol: int = LEASE_PROTOCOL) -> SimulatedNode:
        """Start the process of node ``number``, under an incarnation of its own."""
        name, owner = f"n{number}", f"n{number}:{len(self.nodes)}"
        clock = SkewedClock(self.clock, skew_s)
        stores = [MemoryRecordStore(bucket) for bucket in self._buckets]
        leases = KvLeases(
            leases=stores[0],
            duties=stores[1],
            epochs=stores[2],
            clock=clock,
            ids=SeededIds(self._seed * 1000 + len(self.nodes)),
            protocol=protocol,
        )
        labels = {"zone": "special"} if number % 3 == 0 else {}
        config = HostConfig(owner=owner, node_id=name, labels=labels, ttl_s=self.plan.ttl_s)
        node = self.nodes[owner] = SimulatedNode(name, owner, leases, stores)
        node.host = Host(leases=leases, hooks=node, clock=clock, config=config)
        await node.host.start(self._company)
        return node

    def kill(self, node: SimulatedNode) -> None:
        """The process is gone for its peers: it reaches nothing, for good."""
        node.dead = True
        node.cut(off=True)

    async def end(self, node: SimulatedNode) -> None:
        """The process ends as it should: it drains."""
        node.host.drain()
        await node.host.release_all()
        await node.leases.close()
        node.dead = True

    def admitting(self) -> Iterator[tuple[str, SimulatedNode]]:
        """Each seat and each node that would start a turn on it this moment."""
        for node in self.nodes.values():
            for handle in [*node.attached]:
                if node.host.may_start(handle) is not None:
                    yield handle, node

    async def close(self) -> None:
        """End everything."""
        self.store_down(down=False)
        for node in self.nodes.values():
            node.cut(off=False)
            await node.host.release_all()
            await node.leases.close()
