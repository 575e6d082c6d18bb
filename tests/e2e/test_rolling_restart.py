"""A fleet that is restarted node by node under load: everything is answered once, no seat moves more than twice."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from crewlet.base.clock import SystemClock
from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import Engine
from crewlet.testing.waiting import wait_until
from tests.broker.test_external_broker import TOKEN, external_broker
from tests.e2e.effects import Load, under_load, working_company, write_worker
from tests.e2e.test_fleet_brokers import holders

IN_FULL = bool(os.environ.get("CREWLET_LONG_OUTAGES"))
NODES, SEATS = (5, 100) if IN_FULL else (2, 4)
PAUSE_S = 5.0 if IN_FULL else 0.5
TTL_S = 15 if IN_FULL else 6
MOVES_MAX = 2
BALANCED_S = 180.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ATTACHED = re.compile(r"^timestamp=(\S+) level=info event=seat_attached .*\bseat=(\S+)", re.MULTILINE)
HANDLES = tuple(f"s{number}" for number in range(SEATS))
CLOCK = SystemClock()


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[str]:
    folder = tmp_path / "server"
    folder.mkdir()
    async with external_broker(folder) as url:
        yield url


async def node_files(folder: Path, url: str, name: str) -> EngineFiles:
    write_worker(folder / name)
    node = {
        "node": {"id": name},
        "stream": {"type": "nats", "url": url, "token": TOKEN},
        "coordination": {"type": "embedded-kv", "lease_ttl_seconds": TTL_S},
    }
    return await write_engine_files(folder / name, working_company(HANDLES, folder / "effects"), node=node)


async def balanced(engines: list[Engine], ever: Sequence[Engine]) -> None:
    """Return once every node holds as many seats as the others, and each is established where it is held."""

    async def holds() -> bool:
        held = await holders(engines[0])
        if sorted(Counter(held.values()).values()) != [SEATS // len(engines)] * len(engines):
            return False
        return {seat: nodes[-1] for seat, nodes in homes(ever).items()} == held

    await wait_until(holds, what="equal shares", timeout_s=BALANCED_S)


def homes(engines: Sequence[Engine]) -> dict[str, list[str]]:
    """Where each seat was established, one time after another, as the nodes' logs tell; looking might miss one."""
    said = sorted((*line, engine.files.directory.name) for engine in engines for line in ATTACHED.findall(engine.err))
    seen: dict[str, list[str]] = {}
    for _, seat, node in said:
        seen.setdefault(seat, []).append(node)
    return seen


async def test_a_rolling_restart_under_load_answers_everything_once_and_moves_no_seat_more_than_twice(
    broker: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        ever: list[Engine] = []

        async def started(files: EngineFiles) -> Engine:
            engine = Engine(files)
            ever.append(engine)
            stack.push_async_callback(engine.close)
            await engine.start()
            await engine.ready(timeout_s=60)
            return engine

        files = [await node_files(tmp_path, broker, f"node-{index}") for index in range(NODES)]
        engines = [*await asyncio.gather(*map(started, files))]
        await balanced(engines, ever)
        load = Load(tmp_path / "effects", lambda: engines, pause_s=PAUSE_S)
        before = homes(ever)
        async with under_load(load, HANDLES):
            for index in range(NODES):
                begun_s = CLOCK.elapsed_s()
                leaving = engines.pop(0)
                code = await leaving.drained(timeout_s=60)
                drained_s = CLOCK.elapsed_s()
                engines.append(await started(leaving.files))
                ready_s = CLOCK.elapsed_s()
                await balanced(engines, ever)
                balanced_s = CLOCK.elapsed_s()
                assert code == 0
                print(
                    f"node {index}: drained in {drained_s - begun_s:.1f} s, ready in {ready_s - drained_s:.1f} s,"
                    f" equal shares after {balanced_s - ready_s:.1f} s; {len(load.effects())} messages so far"
                )
        after = homes(ever)
        await load.worked(timeout_s=30)
        moved = {handle: len(nodes) - len(before[handle]) for handle, nodes in after.items()}
        print(f"{len(load.taken)} messages, {len(load.unsure)} without an answer", end="; ")
        print(f"seats by moves: {sorted(Counter(moved.values()).items())}")
        for handle in [handle for handle, moves in moved.items() if moves > MOVES_MAX]:
            print(f"{handle}: {' '.join(after[handle])}")

        assert load.repeated() == {}
        assert load.unasked() == set()
        assert {*moved} == {*HANDLES}
        assert min(moved.values()) >= 1
        assert max(moved.values()) <= MOVES_MAX
