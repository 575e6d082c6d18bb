"""The leases' suite over the record store, whichever backend the store has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from typing import Self

from crewlet.base.clock import Clock
from crewlet.coordination import LEASE_PROTOCOL, KvLeases, Leases, RecordStore
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.testing.contracts.lease_harness import LEASE_TTL_S, Claimant, LeaseHarness, Stores
from crewlet.testing.contracts.lease_steps import Steps
from crewlet.testing.contracts.record_harness import RecordHarness

__all__ = ["StoredLeases"]


class StoredLeases(LeaseHarness):
    """Leases over the clients of a record harness, which is opened and closed with it. ``sabotage`` plants a fault."""

    def __init__(
        self,
        records: RecordHarness,
        *,
        sabotage: Callable[[KvLeases, Stores], Leases] = lambda leases, _stores: leases,
        clock: Clock | None = None,
    ) -> None:
        self._records = records
        self._sabotage = sabotage
        self._clock = clock or records.clock
        self._stack = AsyncExitStack()
        self._stores: dict[str, Stores] = {}
        self._steps: list[Steps] = []

    @property
    def records(self) -> RecordHarness:
        """The stores' own harness."""
        return self._records

    async def __aenter__(self) -> Self:
        """Nothing has to be made first."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End every process that is still held somewhere, and close every process's leases."""
        for steps in self._steps:
            steps.end()
        await asyncio.sleep(0)
        await self._stack.aclose()
        for steps in self._steps:
            await steps.close()

    async def claimant(self, node: str = "one", *, protocol: int | None = None, steps: Steps | None = None) -> Claimant:
        """A process with links of its own to the three buckets."""
        slots = (replace(LEASES, age_s=LEASE_TTL_S), DUTIES, EPOCHS)
        plain = Stores(*[await self._records.client(slot) for slot in slots])
        if steps is not None:
            self._steps.append(steps)
        reached = plain if steps is None else Stores(*(steps.stepping(store) for store in plain.all))
        leases = KvLeases(
            leases=reached.leases,
            duties=reached.duties,
            epochs=reached.epochs,
            clock=self._clock,
            ids=self._records.ids,
            protocol=LEASE_PROTOCOL if protocol is None else protocol,
        )
        self._stack.push_async_callback(leases.close)
        owner = f"{node}:{self._records.ids.hex(8)}"
        self._stores[owner] = plain
        return Claimant(self._sabotage(leases, plain), owner, node)

    async def advance(self, seconds: float) -> None:
        """As the stores' backend does."""
        await self._records.advance(seconds)

    def now(self) -> datetime:
        """As the stores' backend says."""
        return self._records.now()

    async def disturb(self) -> None:
        """As the stores' backend does."""
        await self._records.disturb()

    def stores(self, claimant: Claimant) -> Stores:
        """What the process was given, uncounted."""
        return self._stores[claimant.owner]

    async def cut(self, *stores: RecordStore) -> None:
        """As the stores' backend does."""
        await self._records.cut(*stores)

    async def mend(self, *stores: RecordStore) -> None:
        """As the stores' backend does."""
        await self._records.mend(*stores)

    def lose_reply(self, store: RecordStore) -> None:
        """As the stores' backend does."""
        self._records.lose_reply(store)

    def cut_after_write(self, store: RecordStore) -> None:
        """As the stores' backend does."""
        self._records.cut_after_write(store)

    def withhold(self, store: RecordStore) -> None:
        """As the stores' backend does."""
        self._records.withhold(store)

    async def deliver(self, store: RecordStore) -> None:
        """As the stores' backend does."""
        await self._records.deliver(store)
