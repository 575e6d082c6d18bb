"""A fleet that is restarted node by node under load: everything is answered once, no seat moves more than twice."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from crewlet.base.clock import SystemClock
from crewlet.base.tasks import Tasks
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
LOOK_EVERY_S = 0.5

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

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


async def balanced(engines: list[Engine]) -> None:
    """Return once every node holds as many seats as the others."""

    async def holds() -> bool:
        counts = Counter((await holders(engines[0])).values())
        return None not in counts and sorted(counts.values()) == [SEATS // len(engines)] * len(engines)

    await wait_until(holds, what="equal shares", timeout_s=BALANCED_S)


@dataclass(slots=True)
class Homes:
    """Where each seat has been, one home after another, as a look every now and then saw it."""

    engines: Callable[[], Sequence[Engine]]
    seen: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    async def watch(self) -> None:
        """Look, for ever."""
        while True:
            with suppress(httpx.HTTPError):
                for seat, node in (await holders(self.engines()[-1])).items():
                    homes = self.seen.setdefault(seat, [])
                    if node is not None and (not homes or homes[-1] != node):
                        homes.append(node)
            await asyncio.sleep(LOOK_EVERY_S)


async def tenures(engine: Engine) -> dict[str, int]:
    """How many tenures each seat has had."""
    records = (await engine.api.get("/coordination/epochs", **{"class": "seat", "limit": "1000"}))["records"]
    return {record["value"]["resource"].removeprefix("seat:"): record["value"]["epoch"] for record in records}


async def test_a_rolling_restart_under_load_answers_everything_once_and_moves_no_seat_more_than_twice(
    broker: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:

        async def started(files: EngineFiles) -> Engine:
            engine = Engine(files)
            stack.push_async_callback(engine.close)
            await engine.start()
            await engine.ready(timeout_s=60)
            return engine

        files = [await node_files(tmp_path, broker, f"node-{index}") for index in range(NODES)]
        engines = [*await asyncio.gather(*map(started, files))]
        await balanced(engines)
        load = Load(tmp_path / "effects", lambda: engines, pause_s=PAUSE_S)
        before = await tenures(engines[0])
        moved: dict[str, int] = {}
        homes = Homes(lambda: engines)
        watching = Tasks("homes")
        stack.push_async_callback(watching.close)
        watching.start("watch", homes.watch())
        async with under_load(load, HANDLES):
            for index in range(NODES):
                begun_s = CLOCK.elapsed_s()
                leaving = engines.pop(0)
                code = await leaving.drained(timeout_s=60)
                drained_s = CLOCK.elapsed_s()
                engines.append(await started(leaving.files))
                ready_s = CLOCK.elapsed_s()
                await balanced(engines)
                balanced_s = CLOCK.elapsed_s()
                assert code == 0
                print(
                    f"node {index}: drained in {drained_s - begun_s:.1f} s, ready in {ready_s - drained_s:.1f} s,"
                    f" equal shares after {balanced_s - ready_s:.1f} s; {len(load.effects())} messages so far"
                )
        after = await tenures(engines[0])
        await load.worked(timeout_s=30)
        moved = {handle: epoch - before[handle] for handle, epoch in after.items()}
        print(f"{len(load.taken)} messages, {len(load.unsure)} without an answer", end="; ")
        print(f"seats by moves: {sorted(Counter(moved.values()).items())}")
        for handle in [handle for handle, moves in moved.items() if moves > MOVES_MAX]:
            print(f"{handle}: {' '.join(homes.seen[handle])}")

        assert load.repeated() == {}
        assert load.unasked() == set()
        assert max(moved.values()) <= MOVES_MAX
