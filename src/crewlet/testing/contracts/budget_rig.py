"""The budgets' suite beside the record store's harness: processes with clocks of their own, whose writes are seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any, Final, cast
from zoneinfo import ZoneInfo

from crewlet.base.errors import Conflict, Unavailable
from crewlet.base.tasks import Tasks
from crewlet.coordination import (
    BUDGETS,
    COMPANY_SCOPE,
    UNCAPPED,
    BudgetRecord,
    Budgets,
    Ceilings,
    Record,
    RecordStore,
    Revision,
    Spend,
    Verdict,
    Windows,
    agent_scope,
    windows_at,
)
from crewlet.coordination.records.budget_record import scope_key
from crewlet.coordination.records.codec import decode_record
from crewlet.testing.contracts.record_harness import RecordHarness

__all__ = ["ADA", "NOON", "SEAT", "BudgetProcess", "BudgetRig", "WatchedStore"]

ADA: Final = "5f1c0b36-ada"
"""The agent that most cases charge."""
SEAT: Final = agent_scope(ADA)
NOON: Final = datetime(2026, 9, 23, 12, 0, tzinfo=UTC)
"""A Wednesday in the week 39."""


class WatchedStore:
    """A client of the bucket: what it writes is noted, and its writes under a key can be held, refused or overtaken."""

    def __init__(self, store: RecordStore, written: list[str]) -> None:
        self.attempts = 0
        self.reads = 0
        self._store = store
        self._written = written
        self._held: dict[str, asyncio.Event] = {}
        self._refused: set[str] = set()
        self._overtaken: set[str] = set()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the client's verb, whatever it is
        """The client's own verb."""
        return getattr(self._store, name)

    def hold(self, scope: str) -> Callable[[], None]:
        """Writes of this scope wait before they leave; returns what lets them go."""
        gate = self._held[scope_key(scope)] = asyncio.Event()
        return gate.set

    def refuse(self, scope: str) -> None:
        """Writes of this scope do not leave, and their caller hears nothing in time."""
        self._refused.add(scope_key(scope))

    def overtake(self, scope: str) -> None:
        """Another's write lands before each write of this scope."""
        self._overtaken.add(scope_key(scope))

    def let(self, scope: str) -> None:
        """Undo :meth:`refuse` and :meth:`overtake`."""
        self._refused.discard(scope_key(scope))
        self._overtaken.discard(scope_key(scope))

    async def get(self, key: str) -> Record | None:
        """As the client does it."""
        self.reads += 1
        return await self._store.get(key)

    async def create(self, key: str, value: bytes) -> Record:
        """As the client does it."""
        await self._before(key)
        record = await self._store.create(key, value)
        self._written.append(key)
        return record

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        """As the client does it."""
        await self._before(key)
        record = await self._store.update(key, value, expected=expected)
        self._written.append(key)
        return record

    async def _before(self, key: str) -> None:
        self.attempts += 1
        if key in self._held:
            await self._held[key].wait()
        if key in self._refused:
            raise Unavailable(f"{key}: no answer in time")
        if key in self._overtaken:
            raise Conflict(key, expected=0)


@dataclass(slots=True, kw_only=True, eq=False)
class BudgetProcess:
    """One process of the fleet, with its own link and its own idea of what time it is."""

    link: RecordStore
    store: WatchedStore
    budgets: Budgets
    at: datetime = NOON
    zone: ZoneInfo

    def windows(self) -> Windows:
        """The windows that it is in."""
        return windows_at(self.at, self.zone)

    async def charge(
        self,
        tokens: int,
        *,
        lane: str = "turn",
        number: int = 1,
        agent: str = ADA,
        company: Ceilings = UNCAPPED,
        seat: Ceilings = UNCAPPED,
        check: Callable[[], None] = lambda: None,
    ) -> Verdict:
        """Charge in the windows of this process."""
        spend = Spend(tokens=tokens, lane=lane, number=number, agent_id=agent)
        return await self.budgets.charge(spend, windows=self.windows, check=check, company=company, seat=seat)

    async def post_charge(self, tokens: int, *, lane: str = "run", number: int = 1, seat_alone: bool = False) -> None:
        """Count in the windows of this process, and judge nothing."""
        spend = Spend(tokens=tokens, lane=lane, number=number, agent_id=ADA)
        await self.budgets.post_charge(spend, windows=self.windows, seat_alone=seat_alone)

    async def refuse(self, *, company: Ceilings = UNCAPPED, seat: Ceilings = UNCAPPED) -> Sequence[str]:
        """Turn a call away; returns the scope and period of each window that is marked."""
        refusals = await self.budgets.refuse(self.windows(), agent_id=ADA, company=company, seat=seat)
        return [f"{each.scope.partition(':')[0]} {each.period}" for each in refusals]

    async def spent(self, scope: str = COMPANY_SCOPE) -> BudgetRecord:
        """The counter, as a charge in this process would find it."""
        return await self.budgets.spent(scope, self.windows())

    async def used(self, scope: str = COMPANY_SCOPE) -> tuple[int, int, int]:
        """What is spent in the day, the week and the month."""
        record = await self.spent(scope)
        return record.day.used, record.week.used, record.month.used


class BudgetRig:
    """The processes of one case. ``kind`` is what is under test."""

    def __init__(self, records: RecordHarness, kind: type[Budgets] = Budgets) -> None:
        self.records = records
        self.tasks = Tasks("budget case")
        self.written: list[str] = []
        """The keys that were written, in order, whoever wrote them."""

        self._kind = kind
        self._processes: list[BudgetProcess] = []
        self._eye: RecordStore | None = None

    async def process(self, *, at: datetime = NOON, zone: str = "UTC") -> BudgetProcess:
        """One more process."""
        link = await self.records.client(BUDGETS)
        store = WatchedStore(link, self.written)
        budgets = self._kind(cast("RecordStore", store), Random(len(self._processes)))
        process = BudgetProcess(link=link, store=store, budgets=budgets, at=at, zone=ZoneInfo(zone))
        self._processes.append(process)
        return process

    async def stored(self, scope: str = COMPANY_SCOPE) -> BudgetRecord:
        """The record as it lies in the store."""
        found = await self._look(scope)
        assert found is not None, f"nothing was written for {scope}"
        return decode_record(BudgetRecord, found.value)

    async def revision(self, scope: str = COMPANY_SCOPE) -> int:
        """The revision of a record, 0 for none."""
        found = await self._look(scope)
        return 0 if found is None else found.revision

    async def _look(self, scope: str) -> Record | None:
        if self._eye is None:
            self._eye = await self.records.client(BUDGETS)
        return await self._eye.get(scope_key(scope))

    async def until(self, holds: Callable[[], bool], *, what: str) -> None:
        """Return once ``holds()``. Raises ``TimeoutError``; time that passes is the backend's."""
        for _ in range(400):
            if holds():
                return
            await self.records.advance(0.025)
        raise TimeoutError(what)

    async def close(self) -> None:
        """End every process."""
        await self.tasks.close()
        for process in self._processes:
            process.store.let(COMPANY_SCOPE)
            process.store.let(SEAT)
            await process.budgets.close()
