"""The leases' suite on the leases of a single process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from itertools import count
from typing import ClassVar, NoReturn, Self

from crewlet.backends.memory import MemoryLeases
from crewlet.coordination import Leases, RecordStore
from crewlet.testing.contracts.contract import Capability
from crewlet.testing.contracts.lease_harness import LEASE_TTL_S, Claimant, LeaseHarness, Stores
from crewlet.testing.contracts.lease_steps import Steps
from crewlet.testing.virtual_time import VirtualClock

__all__ = ["LocalLeases"]


class LocalLeases(LeaseHarness):
    """Several owners in one process, on a loop whose time jumps. ``sabotage`` plants a fault."""

    backend: ClassVar[str] = "one process"
    absent: ClassVar[frozenset[Capability]] = frozenset({Capability.LEASE_STORE})

    def __init__(self, *, sabotage: Callable[[MemoryLeases], Leases] = lambda leases: leases) -> None:
        self._clock = VirtualClock()
        self._leases = sabotage(MemoryLeases(self._clock, lease_ttl_s=LEASE_TTL_S))
        self._owners = count(1)

    async def __aenter__(self) -> Self:
        """Nothing has to be made first."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing stays."""

    async def claimant(self, node: str = "one", *, protocol: int | None = None, steps: Steps | None = None) -> Claimant:
        """One more owner."""
        return Claimant(self._leases, f"{node}:{next(self._owners)}", node)

    async def advance(self, seconds: float) -> None:
        """The loop jumps."""
        await asyncio.sleep(seconds)

    def now(self) -> datetime:
        """The process's own clock."""
        return self._clock.now()

    async def disturb(self) -> None:
        """There is nothing to survive."""

    def stores(self, claimant: Claimant) -> Stores:
        """There are none."""
        _none()

    async def cut(self, *stores: RecordStore) -> None:
        """There are none."""
        _none()

    async def mend(self, *stores: RecordStore) -> None:
        """There are none."""
        _none()

    def lose_reply(self, store: RecordStore) -> None:
        """There are none."""
        _none()

    def cut_after_write(self, store: RecordStore) -> None:
        """There are none."""
        _none()

    def withhold(self, store: RecordStore) -> None:
        """There are none."""
        _none()

    async def deliver(self, store: RecordStore) -> None:
        """There are none."""
        _none()


def _none() -> NoReturn:
    raise NotImplementedError("these leases lie in no store")
