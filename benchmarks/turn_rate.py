"""Turns in a crowd: how many a second one process gets through, what each costs, and how long its loop ever stands."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import uvloop

from benchmarks.figures import Figure, Measurement, Sizes, figure, median
from benchmarks.turn_cost import Bench, measured_node
from crewlet import topics
from crewlet.events import Event
from crewlet.events.types import AgentPhaseStarted, AgentTurnCompleted

__all__ = ["MEASUREMENTS"]

_TURNS_A_SECOND: Final = 100.0
_CPU_MS: Final = 8.0
_FIRST_REQUEST_MS: Final = 10.0
_STALL_P999_MS: Final = 50.0
_STALL_WORST_MS: Final = 250.0
_LOOK_EVERY_S: Final = 0.005
_BUDGETED: Final[dict[str, Any]] = {"day": 10**12, "week": 10**12, "month": 10**12}
"""Ceilings that are judged at every charge and never reached."""


@dataclass
class _Waits:
    """From a wake that the broker has to the first phase of its turn, in seconds."""

    sent_s: dict[str, float] = field(default_factory=dict[str, float])
    took_s: list[float] = field(default_factory=list[float])
    ended: int = 0

    async def __call__(self, topic: str, event: Event) -> None:
        if topics.inbox_handle(topic):
            self.sent_s[event.trace_id] = time.perf_counter()
        elif isinstance(event.data, AgentPhaseStarted):
            sent_s = self.sent_s.pop(event.trace_id, None)
            if sent_s is not None:
                self.took_s.append(time.perf_counter() - sent_s)
        elif isinstance(event.data, AgentTurnCompleted):
            self.ended += 1


class _Stalls:
    """How late the loop comes to a task that wants it every few milliseconds."""

    def __init__(self) -> None:
        self.late_s: list[float] = []

    async def look(self) -> None:
        """Until cancelled."""
        while True:
            due_s = time.perf_counter() + _LOOK_EVERY_S
            await asyncio.sleep(_LOOK_EVERY_S)
            self.late_s.append(max(time.perf_counter() - due_s, 0.0))

    def at(self, part: float) -> float:
        """The lateness in milliseconds that ``part`` of all looks stay at or under."""
        ordered = sorted(self.late_s)
        return ordered[min(math.ceil(part * len(ordered)), len(ordered)) - 1] * 1000


async def _kept_busy(bench: Bench, *, in_flight: int, turns: int = 0, seconds: float = 0.0) -> tuple[int, float, float]:
    """Give the node ``in_flight`` messages at a time, each to another seat, for so many turns or so long.

    Returns the turns, and the seconds of the clock and of the processor.
    """
    began_s, cpu_s, sent = time.perf_counter(), time.process_time(), 0

    async def one_after_another() -> None:
        nonlocal sent
        while (sent < turns) if turns else (time.perf_counter() - began_s < seconds):
            number, sent = sent, sent + 1
            await bench.answered(number)

    await asyncio.gather(*(one_after_another() for _ in range(in_flight)))
    return sent, time.perf_counter() - began_s, time.process_time() - cpu_s


def _rate(sizes: Sizes) -> Sequence[Figure]:
    return uvloop.run(_measure_rate(sizes))


async def _measure_rate(sizes: Sizes) -> Sequence[Figure]:
    async with _busy_node(sizes.busy_seats) as bench:
        waits = _Waits()
        bench.parts.ground.queue.add_publish_listener(waits)
        for _ in range(sizes.busy_turns // 20):
            await bench.answered(0)
        alone_ms = median(waits.took_s) * 1000
        await _kept_busy(bench, in_flight=sizes.busy_at_once, turns=sizes.busy_turns // 4)
        rates: list[float] = []
        costs: list[float] = []
        for _ in range(sizes.turn_batches):
            count, wall_s, cpu_s = await _kept_busy(bench, in_flight=sizes.busy_at_once, turns=sizes.busy_turns)
            rates.append(wall_s / count)
            costs.append(cpu_s / count)
        stalls = _Stalls()
        looking = asyncio.create_task(stalls.look())
        await _kept_busy(bench, in_flight=sizes.busy_at_once, seconds=sizes.busy_s)
        looking.cancel()
    a_turn_ms = median(rates) * 1000
    return [
        figure("busy_turn_ms", a_turn_ms, "ms", bound=1000 / _TURNS_A_SECOND),
        figure("busy_turn_cpu_ms", median(costs) * 1000, "ms", bound=_CPU_MS),
        figure("first_request_ms", alone_ms, "ms", bound=_FIRST_REQUEST_MS),
        figure("loop_stall_p999_ms", stalls.at(0.999), "ms", bound=_STALL_P999_MS),
        figure("loop_stall_worst_ms", stalls.at(1.0), "ms", bound=_STALL_WORST_MS),
    ]


@asynccontextmanager
async def _busy_node(seats: int) -> AsyncGenerator[Bench]:
    async with measured_node(seats, token_budget=_BUDGETED) as bench:
        yield bench


MEASUREMENTS = (
    Measurement(
        "turn_rate",
        {
            "busy_turn_ms": "32 turns in flight: the clock's time for each, ledger, budgets, journal and events on",
            "busy_turn_cpu_ms": "the engine's processor time for each, its messages' senders included",
            "first_request_ms": "from a wake in an idle seat's inbox to the first phase of its turn, median",
            "loop_stall_p999_ms": "32 turns in flight on 500 seats: how late the loop comes at 99.9 of 100 looks",
            "loop_stall_worst_ms": "the same, the latest of all",
        },
        _rate,
    ),
)
