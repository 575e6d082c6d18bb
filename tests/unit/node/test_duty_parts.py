"""What this node's duties are put together from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from crewlet.backends.memory import (
    MemoryBroker,
    MemoryBucket,
    MemoryLeases,
    MemoryLog,
    MemoryLogStream,
    MemoryQueue,
    MemoryRecordStore,
)
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.fence import OpenFence
from crewlet.coordination import (
    BUDGETS,
    CHANNELS,
    MAILBOXES,
    SANDBOX_RUNS,
    SLOTS,
    Budgets,
    Channels,
    Mailboxes,
    Revision,
    SandboxRuns,
    swept_slots,
)
from crewlet.duties import Job, LaneSweep, MailboxSweep, RetirementParts
from crewlet.events import Event
from crewlet.node.duty_parts import CompanyRoster, maintenance_jobs, presence_of_seats
from crewlet.node.ground import Ground
from crewlet.testing import SeededIds, VirtualClock
from tests.unit.node.companies import acme, source

pytestmark = pytest.mark.virtual_time


class Touched(MemoryRecordStore):
    """A client that keeps whether it took anything away."""

    removes: int = 0

    async def delete(self, key: str, *, expected: Revision) -> None:
        self.removes += 1
        await super().delete(key, expected=expected)

    async def purge_markers(self, *, before: datetime) -> int:
        self.removes += 1
        return await super().purge_markers(before=before)


@asynccontextmanager
async def jobs_over(stores: dict[str, Touched], clock: Clock, roles: Sequence[str]) -> AsyncGenerator[list[Job]]:
    queue = MemoryQueue(MemoryBroker(clock), node="a")
    ids = SeededIds(1)

    async def publish(_: str, event: Event) -> Event:
        return event

    ground = SimpleNamespace(
        channels=Channels(stores[CHANNELS.name]), stores=stores, writes=SimpleNamespace(publish=publish)
    )
    parts = RetirementParts(
        leases=MemoryLeases(clock, alone=True),
        mailboxes=Mailboxes(stores[MAILBOXES.name]),
        runs=SandboxRuns(stores[SANDBOX_RUNS.name]),
        queue=queue,
        log=MemoryLog(MemoryLogStream(clock)),
        clock=clock,
        ids=ids,
        owner="a:1",
        node_id="a",
        ttl_s=45.0,
    )
    roster = CompanyRoster(lambda: source(acme(roles=[{"name": role, "handle": role} for role in roles]), {}))
    budgets = Budgets(stores[BUDGETS.name], Random(1))
    lanes = LaneSweep(budgets, parts.leases, clock)
    yield maintenance_jobs(cast("Ground", ground), MailboxSweep(roster, parts), lanes, clock, ids)
    await budgets.close()
    await queue.close()


@pytest.mark.spec("C-145")
async def test_maintenance_has_a_job_for_no_bucket_that_the_broker_ages() -> None:
    clock = VirtualClock()
    stores = {slot.name: Touched(MemoryBucket(slot, clock)) for slot in SLOTS}

    async with jobs_over(stores, clock, ["ceo"]) as jobs:
        for job in jobs:
            await job.run(OpenFence())

    assert [job.name for job in jobs] == ["seat_mailboxes", "a2a_channels", "budget_lanes", "coordination_markers"]
    assert {name for name, store in stores.items() if store.removes} == {slot.name for slot in swept_slots()}


async def test_no_seat_goes_that_some_nodes_own_document_has() -> None:
    """Nodes are given their documents by hand: the one that sweeps has an older one than the one that was restarted."""
    clock = VirtualClock()
    stores = {slot.name: Touched(MemoryBucket(slot, clock)) for slot in SLOTS}
    mailboxes = Mailboxes(stores[MAILBOXES.name])
    for handle in ("late", "stranger"):
        await mailboxes.register(handle)
    roles = [{"name": role, "handle": role} for role in ("ceo", "late")]
    newer = CompanyRoster(lambda: source(acme(roles=roles), {}))

    async with jobs_over(stores, clock, ["ceo"]) as jobs:
        for _ in range(4 * 25):
            await jobs[0].run(OpenFence())
            await presence_of_seats(mailboxes, newer).work()
            await asyncio.sleep(limits.MAINTENANCE_EVERY_S)

    assert {each.record.handle for each in await mailboxes.every()} >= {"ceo", "late"}
    assert await mailboxes.get("stranger") is None


@pytest.mark.spec("S-140")
@pytest.mark.parametrize(
    "engineer",
    [
        None,
        {"name": "Engineer", "handle": "builder"},
        {"name": "Engineer", "handle": "eng", "kind": "human", "contact": {"slack_user_id": "U2"}},
    ],
    ids=["deleted", "renamed", "made a person"],
)
async def test_a_seat_is_absent_once_its_role_is_deleted_renamed_or_a_persons(engineer: dict[str, Any] | None) -> None:
    before = acme()
    roles = [{"name": "Technology", "handle": "cto"}, *([engineer] if engineer is not None else [])]
    unit = {"name": "Engineering", "purpose": "Builds it", "goals": ["Ship"], "lead": "cto", "roles": roles}
    after = acme(units=[unit])
    company = before
    roster = CompanyRoster(lambda: source(company, {}))

    was = await roster.agent_handles()
    company = after
    now = await roster.agent_handles()

    assert was == {"ceo", "cto", "eng"}
    assert "eng" not in now
    assert {"ceo", "cto"} <= now
