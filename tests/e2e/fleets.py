"""Fleets of real processes under load, each node in a network of its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crewlet.base.clock import SystemClock
from crewlet.testing.engine_files import EngineFiles, write_engine_files
from crewlet.testing.engines import CREWLET, Engine
from crewlet.testing.waiting import wait_until
from tests.e2e.effects import Load, working_company, write_worker
from tests.e2e.networks import Networks
from tests.e2e.test_fleet_brokers import SECRET, holders

Json = dict[str, Any]
SEATS = tuple(f"s{number}" for number in range(6))
ROUTE_PORT = 6222
CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes in networks of their own, and what they are given to do."""

    networks: Networks
    engines: tuple[Engine, ...]
    load: Load
    ttl_s: float

    def name(self, index: int) -> str:
        """What the fleet knows a node by."""
        return f"node-{index}"

    async def held_by(self, index: int) -> set[str]:
        """The seats that a node says it holds."""
        return set((await self.engines[index].api.get("/health"))["seats"])

    async def shared_among(self, *nodes: int) -> None:
        """Return once these nodes hold all seats, each as many, and each of them says so of the others."""
        wanted = Counter({self.name(index): len(SEATS) // len(nodes) for index in nodes})

        async def holds() -> bool:
            views = [await holders(self.engines[index]) for index in nodes]
            return all(view == views[0] and Counter(view.values()) == wanted for view in views)

        await wait_until(holds, what=f"seats on {nodes}", timeout_s=90)

    async def passed(self, seconds: float) -> None:
        """Return once so much time has passed on the clock that leases are judged by."""
        end_s = CLOCK.elapsed_s() + seconds
        await wait_until(lambda: CLOCK.elapsed_s() >= end_s, what="the time", timeout_s=seconds + 10)


def _node(index: int, ttl_s: int, stream: Json) -> Json:
    coordination = {"type": "embedded-kv", "lease_ttl_seconds": ttl_s}
    return {"node": {"id": f"node-{index}"}, "stream": stream, "coordination": coordination}


@asynccontextmanager
async def running_fleet(
    folder: Path, networks: Networks, streams: Sequence[Json], *, ttl_s: int, first_thinks_ms: int = 0
) -> AsyncGenerator[Fleet]:
    """A node for each of ``streams``; a model call of the first takes ``first_thinks_ms``, of the others nothing.

    The load goes to the others alone: the first may become unreachable.
    """
    effects = folder / "effects"
    async with AsyncExitStack() as stack:
        engines: list[Engine] = []
        for index, stream in enumerate(streams):
            directory = folder / f"node-{index}"
            write_worker(directory, delay_ms=0 if index else first_thinks_ms)
            files: EngineFiles = await write_engine_files(
                directory, working_company(SEATS, effects), node=_node(index, ttl_s, stream)
            )
            socket = folder / f"{index}.sock"
            await networks.relay(index, files.port, socket)
            command = (*networks.within(index), *CREWLET, "run")
            engine = Engine(files, command=command, socket=socket, environment={"FLEET_SECRET": SECRET})
            stack.push_async_callback(engine.close)
            engines.append(await engine.start())
        await asyncio.gather(*(engine.ready(timeout_s=90) for engine in engines))
        yield Fleet(networks, tuple(engines), Load(effects, lambda: engines[1:], pause_s=0.3), float(ttl_s))


def member_streams() -> list[Json]:
    """What three nodes say of their brokers that are one cluster."""
    hosts = [Networks.address(index) for index in range(3)]
    return [
        {
            "type": "embedded",
            "replicas": 3,
            "cluster": {
                "name": "testers",
                "host": host,
                "port": ROUTE_PORT,
                "peers": [f"{each}:{ROUTE_PORT}" for each in hosts],
                "secret": "${FLEET_SECRET}",
            },
        }
        for host in hosts
    ]
