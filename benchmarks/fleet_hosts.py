"""Hosts of seats on a broker, with nothing behind the seats: what holding them costs by itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from benchmarks.companies import handle
from benchmarks.standing_broker import StandingBroker
from crewlet.backends.nats import JetStream, connect, open_bucket
from crewlet.base import limits
from crewlet.base.clock import SystemClock
from crewlet.base.ids import RandomIds
from crewlet.coordination import KvLeases, Lease
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.seats import Host, HostConfig, PlacedSeat, ReleaseMode

__all__ = ["SeatHost", "seat_host"]


class _NothingBehind:
    """Hooks that have nothing to establish."""

    async def on_acquire(self, handle: str, lease: Lease) -> None: ...

    def on_established(self, handle: str) -> None: ...

    async def on_release(self, handle: str, mode: ReleaseMode) -> None: ...

    async def on_unproven(self, handle: str) -> None: ...

    async def on_proven(self, handle: str) -> None: ...


@dataclass(frozen=True, slots=True)
class SeatHost:
    """A node's host, and what it is known as at the broker."""

    host: Host
    name: str
    seats: tuple[PlacedSeat, ...]

    async def start(self) -> None:
        """Take part in the fleet."""
        await self.host.start(self.seats)


@asynccontextmanager
async def seat_host(
    broker: StandingBroker,
    name: str,
    *,
    seats: int,
    ttl_s: float,
    claims_per_sweep: int = limits.SEAT_CLAIMS_PER_SWEEP,
    beat: Callable[[str], None] = lambda _: None,
) -> AsyncGenerator[SeatHost]:
    """One on a connection of its own, of a company of ``seats``; its leases are gone with the broker."""
    clock, ids = SystemClock(), RandomIds()
    wire = await connect(broker.url, token=broker.token, name=name)
    try:
        api = JetStream(wire)
        slots = (replace(LEASES, age_s=ttl_s), DUTIES, EPOCHS)
        stores = [(await open_bucket(api, slot, storage="file", ids=ids, clock=clock)).store for slot in slots]
        leases = KvLeases(leases=stores[0], duties=stores[1], epochs=stores[2], clock=clock, ids=ids)
        host = Host(
            leases=leases,
            hooks=_NothingBehind(),
            clock=clock,
            config=HostConfig(owner=f"{name}:measured", node_id=name, ttl_s=ttl_s, claims_per_sweep=claims_per_sweep),
            beat=beat,
        )
        try:
            yield SeatHost(host, name, tuple(PlacedSeat(handle(number)) for number in range(seats)))
        finally:
            await host.release_all()
            await leases.close()
    finally:
        await wire.close()
