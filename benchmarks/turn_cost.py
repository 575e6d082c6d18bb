"""The processor time of a turn: from an operator's message through routing, the turn and its records to the ack."""

from __future__ import annotations

import asyncio
import cProfile
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import uvloop

from benchmarks.bare_turn import bare_turn_cpu_s
from benchmarks.companies import handle, write_company
from benchmarks.figures import Figure, Measurement, Sizes, figure
from crewlet import topics
from crewlet.base.clock import SystemClock
from crewlet.base.ids import RandomIds
from crewlet.config import Variables, load_company, load_node_file
from crewlet.events import Event, encode
from crewlet.node import CompanySource, Node, NodeSettings
from crewlet.node.mailboxes import inbox_of
from crewlet.node.parts import NodeParts, assemble
from crewlet.testing.engine_files import EngineFiles

__all__ = ["MEASUREMENTS", "Bench", "measured_node", "profile"]

_BOUND_MS: Final = 15.0
_TURN_TIMEOUT_S: Final = 30.0
_ENDED: Final = topics.event_topic("agent_turn_completed")
_FLOOR: Final = "nats-py publishing the turn's messages and apsw inserting them, one after another"


@dataclass
class _Seen:
    """What the node published, as a listener hears of it: counted always, kept for one turn."""

    published: int = 0
    turns: int = 0
    kept: list[bytes] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])

    async def __call__(self, topic: str, event: Event) -> None:
        self.published += 1
        if self.kept is not None:
            self.kept.append(encode(event))
        if topic == _ENDED:
            self.turns += 1
            self._ended_of(event.trace_id).set()
            self._changed.set()

    async def turn_ended(self, trace_id: str) -> None:
        """Return once the turn of that trace has ended. Raises ``TimeoutError``."""
        async with asyncio.timeout(_TURN_TIMEOUT_S):
            await self._ended_of(trace_id).wait()
        del self._ended[trace_id]

    def _ended_of(self, trace_id: str) -> asyncio.Event:
        return self._ended.setdefault(trace_id, asyncio.Event())

    async def turns_ended(self, count: int) -> None:
        """Return once that many turns have ended. Raises ``TimeoutError``."""
        async with asyncio.timeout(_TURN_TIMEOUT_S):
            while self.turns < count:
                self._changed.clear()
                await self._changed.wait()


class Bench:
    """A node to give turns to."""

    def __init__(self, node: Node, parts: NodeParts, seats: int) -> None:
        self.parts = parts
        self.seen = _Seen()
        self._node = node
        self._handles = [handle(number) for number in range(seats)]
        parts.ground.queue.add_publish_listener(self.seen)

    async def alone(self, turns: int) -> tuple[float, float]:
        """Seconds of processor time and of the clock for each of ``turns``, one after another."""
        cpu_s, began_s = time.process_time(), time.perf_counter()
        for number in range(turns):
            ended = self.seen.turns
            await self._send(number)
            await self.seen.turns_ended(ended + 1)
            await self._settled()
        return (time.process_time() - cpu_s) / turns, (time.perf_counter() - began_s) / turns

    async def together(self, turns: int) -> float:
        """Seconds of processor time for each of ``turns`` that all wait at once, on all seats."""
        cpu_s, ended = time.process_time(), self.seen.turns
        await asyncio.gather(*(self._send(number) for number in range(turns)))
        await self.seen.turns_ended(ended + turns)
        await self._settled()
        return (time.process_time() - cpu_s) / turns

    async def answered(self, number: int) -> None:
        """One message, to a seat of its own in turn, until its turn has ended."""
        sent = await self._send(number)
        await self.seen.turn_ended(sent)

    async def messages_of_a_turn(self) -> list[bytes]:
        """What one turn publishes, with the message that led to it."""
        kept: list[bytes] = []
        self.seen.kept = kept
        await self.alone(1)
        self.seen.kept = None
        return kept

    async def _send(self, number: int) -> str:
        seat = self._handles[number % len(self._handles)]
        sent = await self._node.send_message(seat, "What should we build first?", principal="operator:bench")
        return sent.trace_id

    async def _settled(self) -> None:
        """The last turn's record and its ack are written."""
        for each in self._handles:
            await self.parts.ground.queue.wait_idle(inbox_of(each))


def _turns(sizes: Sizes) -> Sequence[Figure]:
    return uvloop.run(_measure(sizes))


async def _measure(sizes: Sizes) -> Sequence[Figure]:
    async with measured_node(sizes.seats) as bench:
        await bench.alone(max(sizes.turns // 5, 1))
        messages = await bench.messages_of_a_turn()
        access = bench.parts.ground.access
        assert access.broker is not None, "the node was given a broker of its own"
        alone: list[tuple[float, float]] = []
        together: list[float] = []
        bare: list[float] = []
        size = sizes.turns // sizes.turn_batches
        with tempfile.TemporaryDirectory(prefix="crewlet-bench-") as scratch:
            for number in range(sizes.turn_batches):
                database = Path(scratch) / f"{number}.db"
                bare.append(await bare_turn_cpu_s(access.broker.url, access.broker.seed, database, messages, size))
                alone.append(await bench.alone(size))
                together.append(await bench.together(size))
    floor_ms = _median_ms(bare)
    return [
        figure(
            "turn_cpu_ms",
            _median_ms([cpu_s for cpu_s, _wall_s in alone]),
            "ms",
            floor=floor_ms,
            floor_name=_FLOOR,
            bound=_BOUND_MS,
        ),
        figure("turn_cpu_busy_ms", _median_ms(together), "ms", floor=floor_ms, floor_name=_FLOOR, bound=_BOUND_MS),
        figure("turn_elapsed_ms", _median_ms([wall_s for _cpu_s, wall_s in alone]), "ms"),
        figure("turn_messages", len(messages), "messages"),
    ]


def profile(turns: int, seats: int) -> cProfile.Profile:
    """Turns one after another under the profiler, on a node that is warm."""
    profiler = cProfile.Profile()

    async def run() -> None:
        async with measured_node(seats) as bench:
            await bench.alone(turns // 5)
            profiler.enable()
            await bench.alone(turns)
            profiler.disable()

    uvloop.run(run())
    return profiler


@asynccontextmanager
async def measured_node(seats: int, *, token_budget: Mapping[str, Any] | None = None) -> AsyncGenerator[Bench]:
    with tempfile.TemporaryDirectory(prefix="crewlet-bench-") as directory:
        files = await asyncio.to_thread(write_company, Path(directory), seats=seats, token_budget=token_budget)
        async with AsyncExitStack() as stack:
            settings = _settings(files)
            parts = await assemble(settings.config, settings.company, settings, stack)
            node = Node(settings, parts, stack.pop_all())
            try:
                await node.start_seats()
                yield Bench(node, parts, seats)
            finally:
                await node.drain()


def _settings(files: EngineFiles) -> NodeSettings:
    variables = Variables({})
    return NodeSettings(
        config=load_node_file(files.node_file, {}).config,
        company=CompanySource(load_company(files.company_file).organization, files.directory, variables),
        environment={},
        clock=SystemClock(),
        ids=RandomIds(),
    )


def _median_ms(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) * 1000


MEASUREMENTS = (
    Measurement(
        "turn",
        {
            "turn_cpu_ms": "the engine's processor time of a turn: scripted model, no tools, everything recorded",
            "turn_cpu_busy_ms": "the same while 10 seats work at once",
            "turn_elapsed_ms": "a message's way through routing and its turn to the ack",
            "turn_messages": "what is published on that way",
        },
        _turns,
    ),
)
