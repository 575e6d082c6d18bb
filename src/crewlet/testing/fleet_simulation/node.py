"""One node of a simulated fleet: its leases and its host, the seats that it has attached, and the turns it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Protocol

from crewlet.backends.memory import MemoryRecordStore
from crewlet.base.errors import Fenced
from crewlet.base.ids import Ids
from crewlet.base.tasks import Tasks
from crewlet.coordination import LEASE_PROTOCOL, ClaimRefused, KvLeases, Lease
from crewlet.seats import Host, HostConfig, ReleaseMode
from crewlet.testing.fleet_simulation.clocks import NodeClock
from crewlet.testing.simulated import SimulatedProcess

__all__ = ["AttachedSeats", "SimulatedNode"]

_TURN_AWAITED_S = 20.0
_STUCK = "this seat does not let go"


class AttachedSeats(Protocol):
    """Who has which seat attached, over all nodes: told at once."""

    def attached(self, node: SimulatedNode, handle: str, lease: Lease) -> None:
        """A node has taken the seat's inbox."""
        ...

    def admits(self, node: SimulatedNode, handle: str) -> None:
        """The seat admits turns on a node, for the first time or again."""
        ...

    def lost(self, node: SimulatedNode, handle: str) -> None:
        """A node tears a seat down as one that it has lost."""
        ...

    def detached(self, node: SimulatedNode, handle: str) -> None:
        """A node has let go of the seat's inbox."""
        ...

    def called(self, node: SimulatedNode, handle: str, epoch: int) -> None:
        """A turn called a tool."""
        ...


class OldLeases(KvLeases):
    """The leases of an older build, whose presence tells fewer things."""

    async def claim(
        self,
        resource: str,
        *,
        owner: str,
        ttl_s: float,
        preferred: str = "",
        data: Mapping[str, Any] | None = None,
    ) -> Lease | ClaimRefused:
        """Take it, saying what that build said."""
        return await super().claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=_said_by_old(data))

    async def renew(self, lease: Lease, *, ttl_s: float, data: Mapping[str, Any] | None = None) -> Lease | None:
        """Extend it, saying what that build said."""
        return await super().renew(lease, ttl_s=ttl_s, data=_said_by_old(data))


def _said_by_old(data: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if data is None else {name: said for name, said in data.items() if name != "seats_held"}


class SimulatedNode:
    """A process of the fleet, from its start to its end. ``leaving``: it drains; ``dead``: it is no more."""

    def __init__(
        self,
        number: int,
        config: HostConfig,
        *,
        stores: Sequence[MemoryRecordStore],
        clock: NodeClock,
        ids: Ids,
        seats: AttachedSeats,
        protocol: int,
    ) -> None:
        kind = KvLeases if protocol >= LEASE_PROTOCOL else OldLeases
        self.number = number
        self.config = config
        self.protocol = protocol
        self.process = SimulatedProcess(config.owner)
        self.stores = stores
        self.clock = clock
        self.leases = kind(
            leases=stores[0], duties=stores[1], epochs=stores[2], clock=clock, ids=ids, protocol=protocol
        )
        self.host = Host(leases=self.leases, hooks=self, clock=clock, config=config)
        self.leaving = False
        self.dead = False
        self.stuck = False
        self.held: dict[str, Lease] = {}
        self._seats = seats
        self._established: set[str] = set()
        self._turns = Tasks("turns")
        self._working: dict[str, asyncio.Task[None]] = {}

    @property
    def owner(self) -> str:
        """Its incarnation."""
        return self.config.owner

    @property
    def serves(self) -> bool:
        """Whether it runs and is to go on running."""
        return not self.leaving and not self.dead

    def begin_turn(self, handle: str, chance: Random) -> None:
        """Mail came for a seat that is attached here: begin a turn if the host lets it."""
        pauses = [chance.choice((0.1, 2.0, 8.0, 20.0, 60.0)) * chance.random() for _ in range(chance.randint(1, 6))]
        if handle in self._working or (epoch := self.host.may_start(handle)) is None:
            return
        self._working[handle] = self._turns.start(f"turn {handle}", self._turn(handle, epoch, pauses))

    async def on_acquire(self, handle: str, lease: Lease) -> None:
        """Establish the seat; it takes a moment."""
        await asyncio.sleep(0)
        self.held[handle] = lease
        self._seats.attached(self, handle, lease)

    def on_established(self, handle: str) -> None:
        """Turns may begin."""
        self._established.add(handle)
        self._seats.admits(self, handle)

    async def on_release(self, handle: str, mode: ReleaseMode) -> None:
        """Let go: after the running turn where there is time for it, at once where the seat is lost."""
        was_established = handle in self._established
        self._established.discard(handle)
        if mode is ReleaseMode.FENCED:
            if was_established:
                self._seats.lost(self, handle)
        elif (turn := self._working.get(handle)) is not None:
            await asyncio.wait((turn,), timeout=_TURN_AWAITED_S)
        if self.stuck:
            raise OSError(_STUCK)
        self.held.pop(handle, None)
        self._seats.detached(self, handle)

    async def on_unproven(self, handle: str) -> None:
        """Admission looks at the host itself."""

    async def on_proven(self, handle: str) -> None:
        """Turns may begin again."""
        self._seats.admits(self, handle)

    def cut(self, *, off: bool) -> None:
        """Whether this node reaches the store."""
        for store in self.stores:
            store.link.cut = off

    async def leave(self) -> None:
        """End as a process should: drain, give everything back."""
        self.host.drain()
        await self.host.release_all()
        await self.leases.close()
        await self._turns.close()

    async def _turn(self, handle: str, epoch: int, pauses: Sequence[float]) -> None:
        fence = self.host.fence(handle, epoch)
        try:
            for pause_s in pauses:
                await asyncio.sleep(pause_s)
                fence.check()
                self._seats.called(self, handle, epoch)
        except Fenced:
            return
        finally:
            del self._working[handle]
