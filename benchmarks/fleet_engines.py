"""Engines as the nodes of one company: their files, their pace, who has which seat, and when a turn began where."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.companies import write_company
from benchmarks.standing_broker import StandingBroker
from crewlet.testing.engine_files import EngineFiles
from crewlet.testing.engines import Engine
from crewlet.testing.ports import free_ports
from crewlet.testing.waiting import wait_until

__all__ = [
    "Pace",
    "dialling_node",
    "fleet_engine",
    "has_attached",
    "held",
    "member_nodes",
    "sent_to",
    "turn_began",
]

Pace = Mapping[str, float]
"""Bounds of ``crewlet.base.limits`` that differ from the shipped ones."""

_PACED_ENGINE: Final = Path(__file__).with_name("paced_engine.py")
_BEGUN: Final = "agent_turn_started"
_ATTACHED: Final = '"seat_attached"'
_DETACHED: Final = '"seat_detached"'
_TAKEN_S: Final = 60.0
_UNAVAILABLE: Final = 503
_READY_S: Final = 180.0
_LONG_WORK_MS: Final = 3_600_000


async def dialling_node(folder: Path, broker: StandingBroker, name: str, *, seats: int, ttl_s: float) -> EngineFiles:
    """The files of a node that dials ``broker``; whoever works in the company works for an hour."""
    node = {
        "node": {"id": name},
        "stream": {"type": "nats", "url": broker.url, "token": broker.token},
        "coordination": {"type": "embedded-kv", "lease_ttl_seconds": int(ttl_s)},
    }
    return await _written(folder / name, seats, node)


async def member_nodes(folder: Path, *, seats: int, ttl_s: float) -> dict[str, EngineFiles]:
    """The files of three nodes whose brokers are one cluster, by their names."""
    ports = free_ports(3)
    peers = [f"127.0.0.1:{port}" for port in ports]
    files: dict[str, EngineFiles] = {}
    for number, port in enumerate(ports):
        name = f"member-{number}"
        node = {
            "node": {"id": name},
            "stream": {
                "type": "embedded",
                "replicas": len(ports),
                "cluster": {"name": "measured", "port": port, "peers": peers},
            },
            "coordination": {"type": "embedded-kv", "lease_ttl_seconds": int(ttl_s)},
        }
        files[name] = await _written(folder / name, seats, node)
    return files


@asynccontextmanager
async def fleet_engine(files: EngineFiles, pace: Pace | None = None, *, ready: bool = True) -> AsyncGenerator[Engine]:
    """An engine at its pace; whatever becomes of it, nothing of it is left at the end."""
    paced = (sys.executable, str(_PACED_ENGINE), *(f"{name}={number}" for name, number in (pace or {}).items()), "run")
    engine = Engine(files, command=paced if pace else ())
    try:
        await engine.start()
        if ready:
            await engine.ready(timeout_s=_READY_S)
        yield engine
    finally:
        await engine.close()


def held(engine: Engine) -> int:
    """How many seats it runs, by its own log. Raises ``AssertionError`` with that log where it has ended."""
    said = engine.err
    assert engine.exit_code is None, f"the engine ended with {engine.exit_code}:\n{said}"
    seats: set[str] = set()
    for line in said.rpartition("\n")[0].splitlines():
        if _ATTACHED in line:
            seats.add(json.loads(line)["seat"])
        elif _DETACHED in line:
            # One that was given up while it was being established was never attached.
            seats.discard(json.loads(line)["seat"])
    return len(seats)


async def has_attached(engines: Sequence[Engine], seats: int, *, within_s: float) -> None:
    """Return once they run so many seats together. Raises ``TimeoutError``."""
    await wait_until(lambda: sum(map(held, engines)) >= seats, what=f"{seats} seats held", timeout_s=within_s)


async def sent_to(seat: str, through: Engine) -> str:
    """Write to a seat, again while brokers elect, as whoever gets no answer does: the trace of what comes of it."""
    sent: dict[str, Any] = {}

    async def taken() -> bool:
        nonlocal sent
        try:
            sent = await through.api.post(f"/seats/{seat}/messages", {"text": "What first?"})
        except httpx.HTTPStatusError as refused:
            if refused.response.status_code != _UNAVAILABLE:
                raise
        return bool(sent)

    await wait_until(taken, what="a message that was taken", timeout_s=_TAKEN_S)
    return str(sent["trace_id"])


async def turn_began(trace_id: str, on: Sequence[Engine], *, within_s: float) -> tuple[Engine, datetime]:
    """Where the turn on this message began first, and when by that node's own event. Raises ``TimeoutError``."""
    found: list[tuple[datetime, Engine]] = []

    async def has_begun() -> bool:
        for engine in on:
            page = await engine.api.get("/events", type=_BEGUN, trace_id=trace_id)
            found.extend((datetime.fromisoformat(row["timestamp"]), engine) for row in page["events"])
        return bool(found)

    await wait_until(has_begun, what="a turn", timeout_s=within_s)
    at, engine = min(found, key=lambda each: each[0])
    return engine, at


async def _written(folder: Path, seats: int, node: Mapping[str, Any]) -> EngineFiles:
    return await asyncio.to_thread(write_company, folder, seats=seats, node=node, delay_ms=_LONG_WORK_MS)
