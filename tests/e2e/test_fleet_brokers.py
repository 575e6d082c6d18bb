"""A fleet of three processes on one machine, each with a broker that is a member of one cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine
from crewlet.testing.ports import free_ports
from crewlet.testing.waiting import wait_until
from tests.e2e.companies import ECHO, company, role, scripted, write_script

SECRET = "of-the-members-of-a-fleet-under-test"
TTL_S = 15
READY_S = 120.0
DONE = "agent_turn_completed"
LEASES = "/coordination/leases"
UNAVAILABLE = 503

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(300)]


async def fleet_files(folder: Path) -> list[EngineFiles]:
    """Three node files that fit together, each beside a copy of one company: two seats that repeat what they hear."""
    document = company(role("ceo"), role("cto"), llm={"script": scripted()})
    ports = free_ports(3)
    files: list[EngineFiles] = []
    for index, port in enumerate(ports):
        directory = folder / f"node-{index}"
        write_script(directory, ECHO)
        cluster: dict[str, Any] = {
            "name": "testers",
            "port": port,
            "peers": [f"127.0.0.1:{each}" for each in ports],
            "secret": "${FLEET_SECRET}",
        }
        node = {
            "node": {"id": f"node-{index}"},
            "stream": {"type": "embedded", "replicas": 3, "cluster": cluster},
            "coordination": {"type": "embedded-kv", "lease_ttl_seconds": TTL_S},
        }
        files.append(await write_engine_files(directory, document, node=node))
    return files


@asynccontextmanager
async def running(files: EngineFiles) -> AsyncGenerator[Engine]:
    """An engine that was started; whatever becomes of it, nothing of it is left at the end."""
    engine = Engine(files, environment={"FLEET_SECRET": SECRET})
    try:
        yield await engine.start()
    finally:
        await engine.close()


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[list[Engine]]:
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(running(files)) for files in await fleet_files(tmp_path)]
        await asyncio.gather(*(engine.ready(timeout_s=READY_S) for engine in engines))
        yield engines


async def send(engine: Engine, seat: str, text: str) -> str:
    """Write to a seat, again while the brokers elect, as whoever gets no answer does. The trace of what it causes."""
    async with asyncio.timeout(60.0):
        while True:
            try:
                return str((await engine.api.post(f"/seats/{seat}/messages", {"text": text}))["trace_id"])
            except httpx.HTTPStatusError as refused:
                if refused.response.status_code != UNAVAILABLE:
                    raise


async def turns_ended(engines: list[Engine], trace_id: str) -> int:
    """How many turns of this trace ended, wherever they ran: each node's log holds its own."""
    pages = [await engine.api.get("/events", type=DONE, trace_id=trace_id) for engine in engines]
    return sum(len(page["events"]) for page in pages)


async def answered(engines: list[Engine], trace_id: str, *, timeout_s: float) -> None:
    """Return once a turn of this trace ended somewhere."""

    async def holds() -> bool:
        return await turns_ended(engines, trace_id) > 0

    await wait_until(holds, what="an answer", timeout_s=timeout_s)


async def holders(engine: Engine) -> dict[str, str | None]:
    """Which node runs which seat, as ``engine`` sees it; nothing while the brokers elect."""
    try:
        view = await engine.api.get("/query/fleet")
    except httpx.HTTPStatusError as refused:
        if refused.response.status_code != UNAVAILABLE:
            raise
        return {}
    return {seat["handle"]: seat["node"] for seat in view["seats"]}


async def all_held(engine: Engine, among: set[str], *, timeout_s: float) -> dict[str, str | None]:
    """Who holds what, once every seat is held by one of these nodes."""
    seen: dict[str, str | None] = {}

    async def holds() -> bool:
        nonlocal seen
        seen = await holders(engine)
        return bool(seen) and set(seen.values()) <= among

    await wait_until(holds, what=f"every seat on one of {sorted(among)}", timeout_s=timeout_s)
    return seen


@pytest.mark.spec("E-010", "S-175", "S-218")
async def test_three_processes_are_one_company_and_a_message_through_any_of_them_is_answered_once(
    fleet: list[Engine],
) -> None:
    await all_held(fleet[0], {"node-0", "node-1", "node-2"}, timeout_s=60.0)

    traces = [await send(engine, seat, "What first?") for engine in fleet for seat in ("ceo", "cto")]
    for trace in traces:
        await answered(fleet, trace, timeout_s=60.0)

    # A message that both a holder and a stranger worked would have shown by the time that the last one was.
    assert [await turns_ended(fleet, trace) for trace in traces] == [1] * 6

    async def agree() -> bool:
        views = [await holders(engine) for engine in fleet]
        return views[0] == views[1] == views[2] and None not in views[0].values()

    await wait_until(agree, what="one view of who runs what, from each node", timeout_s=60.0)


async def test_a_member_that_is_killed_leaves_the_others_at_work_and_comes_back_to_them(fleet: list[Engine]) -> None:
    held = await all_held(fleet[0], {"node-0", "node-1", "node-2"}, timeout_s=60.0)
    dead = next(engine for engine in fleet if f"node-{fleet.index(engine)}" in held.values())
    names = {f"node-{index}" for index, engine in enumerate(fleet) if engine is not dead}
    others = [engine for engine in fleet if engine is not dead]

    await dead.kill()
    traces = [await send(engine, seat, "And now?") for engine in others for seat in held]
    moved = await all_held(others[1], names, timeout_s=90.0)
    for trace in traces:
        await answered(others, trace, timeout_s=90.0)

    assert set(moved) == set(held)
    assert (await others[0].api.get(LEASES))["records"]

    async with running(dead.files) as back:
        await back.ready(timeout_s=READY_S)
        nodes = await back.api.get("/query/fleet")
        trace = await send(back, "ceo", "Are you back?")
        await answered([*others, back], trace, timeout_s=60.0)

    assert {node["id"] for node in nodes["nodes"]} == {"node-0", "node-1", "node-2"}


async def test_a_node_that_ends_as_asked_gives_its_seats_to_the_others_before_their_leases_could_run_out(
    fleet: list[Engine],
) -> None:
    held = await all_held(fleet[0], {"node-0", "node-1", "node-2"}, timeout_s=60.0)
    leaving = next(engine for engine in fleet if f"node-{fleet.index(engine)}" in held.values())
    names = {f"node-{index}" for index, engine in enumerate(fleet) if engine is not leaving}
    others = [engine for engine in fleet if engine is not leaving]

    ending = asyncio.ensure_future(leaving.drained())
    moved = await all_held(others[0], names, timeout_s=TTL_S - 3.0)
    traces = [await send(others[0], seat, "Who are you now?") for seat in moved]
    for trace in traces:
        await answered(others, trace, timeout_s=30.0)

    assert await ending == 0
    assert leaving.left_behind() == frozenset()
    assert [await turns_ended(others, trace) for trace in traces] == [1, 1]


async def test_a_fleet_that_was_killed_as_a_whole_comes_back_with_what_it_had(fleet: list[Engine]) -> None:
    await all_held(fleet[0], {"node-0", "node-1", "node-2"}, timeout_s=60.0)
    before = await send(fleet[0], "ceo", "Do you remember?")
    await answered(fleet, before, timeout_s=60.0)
    for engine in fleet:
        await engine.kill()

    async with AsyncExitStack() as stack:
        again = [await stack.enter_async_context(running(engine.files)) for engine in fleet]
        await asyncio.gather(*(engine.ready(timeout_s=READY_S) for engine in again))
        await all_held(again[0], {"node-0", "node-1", "node-2"}, timeout_s=60.0)
        after = await send(again[1], "cto", "And you?")
        await answered(again, after, timeout_s=60.0)
        epochs = [seat["epoch"] for seat in (await again[2].api.get("/query/fleet"))["seats"]]

        # Counters that had begun anew would be at their first tenure.
        assert min(epochs) > 1
        assert await turns_ended(again, before) == 1
