"""Ten thousand charges of one record, by one process and by four: an exact sum, and no failure of a healthy store."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from crewlet.backends.nats import JetStream, open_bucket
from crewlet.base.errors import Unavailable
from crewlet.base.ids import RandomIds
from crewlet.coordination import BUDGETS, COMPANY_SCOPE, Budgets
from crewlet.testing import wait_until
from crewlet.testing.clusters import Cluster, running_cluster
from tests.contracts.charging_process import TOKENS, calendar, charge_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

SCRIPT = Path(__file__).with_name("charging_process.py")
TASKS, EACH = 32, 80
"""What each of four processes does: 2,560 charges, 10,240 in all."""
ALL_OF_IT = (4 * TASKS * EACH * TOKENS,) * 3


@asynccontextmanager
async def budgets_on(cluster: Cluster) -> AsyncGenerator[Budgets]:
    wire = await cluster.connect("here")
    bucket = await open_bucket(JetStream(wire), BUDGETS, storage="file", ids=RandomIds(), replicas=cluster.size)
    budgets = Budgets(bucket.store, Random(1))
    try:
        yield budgets
    finally:
        await budgets.close()
        await wire.close()


@asynccontextmanager
async def charging(cluster: Cluster, name: str) -> AsyncGenerator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        cluster.url,
        cluster.token,
        name,
        *map(str, (TASKS, EACH, cluster.size)),
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def said(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def go(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    await process.stdin.drain()


async def spent(budgets: Budgets) -> tuple[int, int, int]:
    record = await budgets.spent(COMPANY_SCOPE, calendar()())
    return record.day.used, record.week.used, record.month.used


async def spent_once_it_answers(budgets: Budgets) -> tuple[int, int, int]:
    found: list[tuple[int, int, int]] = []

    async def answers() -> bool:
        with contextlib.suppress(Unavailable):
            found.append(await spent(budgets))
        return bool(found)

    await wait_until(answers, what="an answer of the store", timeout_s=60)
    return found[0]


async def charge_on(cluster: Cluster, name: str) -> list[str]:
    """Let four processes charge together; returns how many charges of each had no answer."""
    async with AsyncExitStack() as stack:
        processes = [await stack.enter_async_context(charging(cluster, f"{name}{each}")) for each in range(4)]
        assert [await said(process) for process in processes] == ["ready"] * 4
        await asyncio.gather(*map(go, processes))
        return [await said(process) for process in processes]


@pytest.fixture
def one_member() -> Iterator[Cluster]:
    with running_cluster(1) as cluster:
        yield cluster


@pytest.fixture
def members() -> Iterator[Cluster]:
    with running_cluster(3) as cluster:
        yield cluster


@pytest.mark.spec("C-190")
async def test_ten_thousand_charges_of_one_process_are_counted_exactly(one_member: Cluster) -> None:
    async with budgets_on(one_member) as budgets:
        unanswered = await charge_all(budgets, "here", tasks=TASKS, each=4 * EACH)

        assert unanswered == 0
        assert await spent(budgets) == ALL_OF_IT


@pytest.mark.spec("C-190")
async def test_ten_thousand_charges_of_four_processes_are_counted_exactly(one_member: Cluster) -> None:
    async with budgets_on(one_member) as budgets:
        unanswered = await charge_on(one_member, "p")

        assert unanswered == ["0"] * 4
        assert await spent(budgets) == ALL_OF_IT


@pytest.mark.cluster
async def test_ten_thousand_charges_on_three_members_are_counted_exactly(members: Cluster) -> None:
    async with budgets_on(members) as budgets:
        unanswered = await charge_on(members, "p")

        assert unanswered == ["0"] * 4
        assert await spent(budgets) == ALL_OF_IT


@pytest.mark.cluster
async def test_charges_are_counted_exactly_though_a_member_is_lost_among_them(members: Cluster) -> None:
    async with budgets_on(members) as budgets:

        async def begun() -> bool:
            return sum(await spent_once_it_answers(budgets)) > 0

        async with asyncio.TaskGroup() as group:
            group.create_task(charge_on(members, "p"))
            await wait_until(begun, what="a first charge", timeout_s=60)
            await members.kill(0)

        assert await spent_once_it_answers(budgets) == ALL_OF_IT
