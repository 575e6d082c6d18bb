"""A store that says nothing: the heartbeat goes on turning, however short the leases, and the seats are given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from crewlet.backends.memory.leases import MemoryLeases
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import ClaimRefused, Lease
from crewlet.seats import HEARTBEAT, Host, HostConfig, PlacedSeat, ReleaseMode
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time

SEATS = [PlacedSeat(f"s{number}") for number in range(3 * limits.RENEWS_AT_ONCE)]


class Silent(MemoryLeases):
    """The twin; while ``silent``, no answer comes for as long as two requests of the broker's may take."""

    silent = False

    async def claim(
        self,
        resource: str,
        *,
        owner: str,
        ttl_s: float,
        preferred: str = "",
        data: Mapping[str, Any] | None = None,
    ) -> Lease | ClaimRefused:
        try:
            await self._say_nothing()
        except asyncio.CancelledError:
            # One that is called off takes back what it wrote.
            await asyncio.sleep(limits.LEASE_GIVE_BACK_S)
            raise
        return await super().claim(resource, owner=owner, ttl_s=ttl_s, preferred=preferred, data=data)

    async def renew(self, lease: Lease, *, ttl_s: float, data: Mapping[str, Any] | None = None) -> Lease | None:
        await self._say_nothing()
        return await super().renew(lease, ttl_s=ttl_s, data=data)

    async def held(self, kind: str) -> list[Lease]:
        await self._say_nothing()
        return await super().held(kind)

    async def _say_nothing(self) -> None:
        if self.silent:
            await asyncio.sleep(2 * limits.BROKER_REQUEST_TIMEOUT_S)
            raise Unavailable("nobody answers")


@dataclass
class Hooks:
    """Records how seats end."""

    released: list[tuple[str, ReleaseMode]] = field(default_factory=list[tuple[str, ReleaseMode]])

    async def on_acquire(self, handle: str, lease: Lease) -> None: ...
    def on_established(self, handle: str) -> None: ...
    async def on_unproven(self, handle: str) -> None: ...
    async def on_proven(self, handle: str) -> None: ...
    async def on_release(self, handle: str, mode: ReleaseMode) -> None:
        self.released.append((handle, mode))


@dataclass
class World:
    """A node, when its heartbeat turned, and what became of its seats."""

    leases: Silent
    hooks: Hooks
    host: Host
    beats: list[float]

    def longest_still_s(self, since_s: float, until_s: float) -> float:
        turned = [since_s, *(beat for beat in self.beats if since_s < beat < until_s), until_s]
        return max(later - earlier for earlier, later in pairwise(turned))


@pytest.fixture(params=[limits.LEASE_TTL_MIN_S, limits.LEASE_TTL_REPLICATED_MIN_S, limits.LEASE_TTL_S])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    clock, beats, hooks, ttl_s = VirtualClock(), list[float](), Hooks(), float(request.param)
    leases = Silent(clock)

    def beat(loop: str) -> None:
        if loop == HEARTBEAT:
            beats.append(clock.elapsed_s())

    config = HostConfig(owner="a:1", node_id="a", ttl_s=ttl_s, claims_per_sweep=len(SEATS))
    host = Host(leases=leases, hooks=hooks, clock=clock, config=config, beat=beat)
    await host.start(SEATS)
    yield World(leases, hooks, host, beats)
    leases.silent = False
    await host.release_all()


async def test_the_heartbeat_turns_within_two_thirds_of_a_lease_whatever_the_store_does_not_say(
    world: World, request: pytest.FixtureRequest
) -> None:
    ttl_s = float(request.node.callspec.params["world"])
    clock = VirtualClock()
    began_s = clock.elapsed_s()
    world.leases.silent = True

    await asyncio.sleep(20 * ttl_s)

    # The watchdog ends a process whose heartbeat stood still for a whole lease.
    assert world.longest_still_s(began_s, clock.elapsed_s()) <= ttl_s * 2 / 3
    assert {mode for _, mode in world.hooks.released} == {ReleaseMode.FENCED}
    assert len(world.hooks.released) == len(SEATS)
    assert world.host.held() == ()


async def test_once_the_store_speaks_again_the_node_is_present_and_holds_its_seats(world: World) -> None:
    world.leases.silent = True
    await asyncio.sleep(200.0)

    world.leases.silent = False
    await asyncio.sleep(60.0)

    assert world.host.trouble == ""
    assert len(world.host.held()) == len(SEATS)
