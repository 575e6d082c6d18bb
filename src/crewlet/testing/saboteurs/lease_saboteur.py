"""What every saboteur of the leases has in common: leases over the twin that do one thing wrong, and who notices."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from crewlet.coordination import KvLeases, Lease, Leases, Record, RecordStore
from crewlet.coordination.lease_names import is_under_lease_ttl, lease_key, resource_kind
from crewlet.testing.contracts.lease_harness import Stores

__all__ = ["LeaseSaboteur", "SharedLeases", "planted_leases"]


@dataclass(slots=True)
class SharedLeases:
    """What the saboteurs of one case know of each other."""

    tenures: dict[str, Lease] = field(default_factory=dict[str, Lease])
    marked: dict[str, float] = field(default_factory=dict[str, float])
    count: int = 0


class LeaseSaboteur:
    """One process's leases; a subclass does one verb wrong. ``caught_by`` is the promise that must find it out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]

    def __init__(self, twin: KvLeases, stores: Stores, shared: SharedLeases) -> None:
        self.twin = twin
        self.stores = stores
        self.shared = shared

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the twin's verb, whatever it is
        """The twin's own verb."""
        return getattr(self.twin, name)

    @property
    def now_s(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()

    def store_of(self, resource: str) -> RecordStore:
        """Where its lease lies."""
        return self.stores.leases if is_under_lease_ttl(resource_kind(resource)) else self.stores.duties

    async def record(self, resource: str) -> Record | None:
        """What lies there."""
        return await self.store_of(resource).get(lease_key(resource))

    async def wipe(self, resource: str) -> None:
        """Take away whatever lies there."""
        found = await self.record(resource)
        if found is not None:
            await self.store_of(resource).delete(found.key, expected=found.revision)


def planted_leases(kind: type[LeaseSaboteur]) -> Callable[[KvLeases, Stores], Leases]:
    """What turns each process of one case into a saboteur of this kind."""
    shared = SharedLeases()
    return lambda twin, stores: cast("Leases", kind(twin, stores, shared))
