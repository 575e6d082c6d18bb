"""A company with ceilings over the twin of the counters, on virtual time."""

from __future__ import annotations

from random import Random

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.coordination import BUDGETS, COMPANY_SCOPE, BudgetRecord, Budgets, Spend, agent_scope, windows_at
from crewlet.llm import Usage
from crewlet.node.seat_budget import zone_of
from crewlet.org import Organization
from crewlet.testing import VirtualClock
from crewlet.turns import RefusedWindow, Spent
from tests.unit.node.companies import acme, seat_of

__all__ = ["BudgetWorld", "spent"]


def spent(number: int, tokens: int = 10, lane: str = "turn-1") -> Spent:
    """A reply of so many tokens, of which two were written."""
    return Spent(
        lane=lane,
        number=number,
        usage=Usage(input_tokens=tokens - 2, output_tokens=2, cache_read_tokens=tokens - 3, cache_write_tokens=1),
        provider_key="main",
        model="model-1",
    )


class BudgetWorld:
    """One process's counters. ``company`` is in force, and may be replaced; ``refused`` is what was told of."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self.bucket = MemoryBucket(BUDGETS, self.clock)
        self.store = MemoryRecordStore(self.bucket)
        self.budgets = Budgets(self.store, Random(1))
        self.company = acme()
        self.refused: list[tuple[RefusedWindow, ...]] = []

    def in_force(self) -> Organization:
        return self.company

    def apply(self, *, seat: dict[str, int] | None = None, zone: str = "UTC", **company: int) -> Organization:
        """A document with these ceilings, for the company and for the ceo."""
        roles = [{"name": "Chief", "handle": "ceo", "token_budget": seat or {}}, {"name": "Other", "handle": "cto"}]
        self.company = acme(roles=roles, units=[], token_budget=company, timezone=zone)
        return self.company

    def agent_id(self, handle: str = "ceo") -> str:
        return seat_of(self.company, handle).agent_id or ""

    async def spend(self, tokens: int, handle: str = "ceo", lane: str = "before") -> None:
        """Charged by somebody, whatever it comes to."""
        zone = zone_of(self.company)
        await self.budgets.charge(
            Spend(tokens=tokens, lane=lane, number=1, agent_id=self.agent_id(handle)),
            windows=lambda: windows_at(self.clock.now(), zone),
        )

    async def counter(self, scope: str = COMPANY_SCOPE) -> BudgetRecord:
        windows = windows_at(self.clock.now(), zone_of(self.company))
        return await Budgets(MemoryRecordStore(self.bucket), Random(2)).spent(scope, windows)

    async def seat_counter(self, handle: str = "ceo") -> BudgetRecord:
        return await self.counter(agent_scope(self.agent_id(handle)))
