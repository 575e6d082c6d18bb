"""Turns in a crowd: how many a second one process gets through, what each costs, and how long its loop ever stands."""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import uvloop

from benchmarks.figures import Figure, Measurement, Sizes, figure, median
from benchmarks.turn_cost import Bench, measured_node
from crewlet import topics
from crewlet.base.collecting import collect_seldom
from crewlet.base.ids import RandomIds
from crewlet.events import Event, decode
from crewlet.events.types import AgentTurnCompleted, AgentTurnProgress

__all__ = ["MEASUREMENTS"]

_TURNS_A_SECOND: Final = 100.0
_CPU_MS: Final = 8.0
_FIRST_REQUEST_MS: Final = 10.0
_STALL_P999_MS: Final = 50.0
_STALL_WORST_MS: Final = 250.0
_LOOK_EVERY_S: Final = 0.005
_SCHEDULED: Final = Path("/proc/thread-self/schedstat")
_NOBODYS: Final = "bench.sent"
_BUDGETED: Final[dict[str, Any]] = {"day": 10**12, "week": 10**12, "month": 10**12}
"""Ceilings that are judged at every charge and never reached."""


@dataclass
class _Waits:
    """From a wake that the broker has to the model's first request, in seconds.

    The frame that opens the first phase is the last thing that is told before the model is asked.
    """

    sent_s: dict[str, float] = field(default_factory=dict[str, float])
    took_s: list[float] = field(default_factory=list[float])
    ended: int = 0

    async def __call__(self, topic: str, event: Event) -> None:
        if topics.inbox_handle(topic):
            self.sent_s[event.trace_id] = time.perf_counter()
        elif isinstance(event.data, AgentTurnProgress) and event.data.state == "opened":
            sent_s = self.sent_s.pop(event.trace_id, None)
            if sent_s is not None:
                self.took_s.append(time.perf_counter() - sent_s)
        elif isinstance(event.data, AgentTurnCompleted):
            self.ended += 1


class _Stalls:
    """How late the loop comes to a task that wants it every few milliseconds.

    ``own_s`` is the lateness without what the loop's thread waited meanwhile for a processor, ready to run: where the
    machine has other work that is its neighbours' part. The same as ``late_s`` where the system does not tell.
    """

    def __init__(self) -> None:
        self.late_s: list[float] = []
        self.own_s: list[float] = []

    async def look(self) -> None:
        """Until cancelled."""
        while True:
            due_s, kept_s = time.perf_counter() + _LOOK_EVERY_S, _kept_waiting_s()
            await asyncio.sleep(_LOOK_EVERY_S)
            late_s = max(time.perf_counter() - due_s, 0.0)
            self.late_s.append(late_s)
            self.own_s.append(max(late_s - (_kept_waiting_s() - kept_s), 0.0))


def _at(part: float, late_s: Sequence[float]) -> float:
    """The lateness in milliseconds that ``part`` of all looks stay at or under."""
    ordered = sorted(late_s)
    return ordered[min(math.ceil(part * len(ordered)), len(ordered)) - 1] * 1000


def _kept_waiting_s() -> float:
    """How long this thread has been ready to run while others had the processors; 0 where nobody counts that."""
    try:
        return int(_SCHEDULED.read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


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


async def _sent_alone(bench: Bench, message: Event, *, at_once: int, count: int) -> float:
    """Seconds of processor time for each of ``count`` sends of such a message to where nobody listens."""
    queue, left = bench.parts.ground.queue, count
    ids = RandomIds()

    async def one_after_another() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await queue.publish(_NOBODYS, replace(message, id=str(ids.uuid()), node=""))

    await queue.publish(_NOBODYS, message)
    cpu_s = time.process_time()
    await asyncio.gather(*(one_after_another() for _ in range(at_once)))
    return (time.process_time() - cpu_s) / count


def _rate(sizes: Sizes) -> Sequence[Figure]:
    return uvloop.run(_measure_rate(sizes))


async def _measure_rate(sizes: Sizes) -> Sequence[Figure]:
    rates: list[float] = []
    costs: list[float] = []
    async with _busy_node(sizes.rate_seats) as bench:
        message = decode((await bench.messages_of_a_turn())[0])
        await _kept_busy(bench, in_flight=sizes.busy_at_once, turns=sizes.busy_turns // 4)
        for _ in range(sizes.turn_batches):
            count, wall_s, cpu_s = await _kept_busy(bench, in_flight=sizes.busy_at_once, turns=sizes.busy_turns)
            rates.append(wall_s / count)
            costs.append(cpu_s / count)
        sent_s = await _sent_alone(bench, message, at_once=sizes.busy_at_once, count=sizes.busy_turns)
    return [
        figure("busy_turn_ms", median(rates) * 1000, "ms", bound=1000 / _TURNS_A_SECOND),
        figure("busy_turn_cpu_ms", median(costs) * 1000, "ms", bound=_CPU_MS),
        figure("busy_sender_cpu_ms", sent_s * 1000, "ms"),
        *await _measure_stalls(sizes),
    ]


async def _measure_stalls(sizes: Sizes) -> Sequence[Figure]:
    async with _busy_node(sizes.busy_seats) as bench:
        waits = _Waits()
        bench.parts.ground.queue.add_publish_listener(waits)
        for _ in range(sizes.busy_turns // 20):
            await bench.answered(0)
        alone_ms = median(waits.took_s) * 1000
        await _kept_busy(bench, in_flight=sizes.busy_at_once, turns=sizes.busy_turns // 4)
        stalls = _Stalls()
        looking = asyncio.create_task(stalls.look())
        count, wall_s, cpu_s = await _kept_busy(bench, in_flight=sizes.busy_at_once, seconds=sizes.busy_s)
        looking.cancel()
    return [
        figure("crowded_turn_ms", wall_s / count * 1000, "ms"),
        figure("crowded_turn_cpu_ms", cpu_s / count * 1000, "ms"),
        figure("first_request_ms", alone_ms, "ms", bound=_FIRST_REQUEST_MS),
        figure("loop_stall_p999_ms", _at(0.999, stalls.late_s), "ms", bound=_STALL_P999_MS),
        figure("loop_stall_worst_ms", _at(1.0, stalls.late_s), "ms", bound=_STALL_WORST_MS),
        figure("loop_stall_own_p999_ms", _at(0.999, stalls.own_s), "ms"),
        figure("loop_stall_own_worst_ms", _at(1.0, stalls.own_s), "ms"),
    ]


@asynccontextmanager
async def _busy_node(seats: int) -> AsyncGenerator[Bench]:
    async with measured_node(seats, token_budget=_BUDGETED) as bench:
        usual = gc.get_threshold()
        # As a started node does.
        collect_seldom()
        try:
            yield bench
        finally:
            gc.set_threshold(*usual)
            gc.unfreeze()


MEASUREMENTS = (
    Measurement(
        "turn_rate",
        {
            "busy_turn_ms": "32 turns in flight on 64 seats, all of it recorded and counted: the clock's time for each",
            "busy_turn_cpu_ms": "the engine's processor time for each, its messages' senders included",
            "busy_sender_cpu_ms": "what of that is the sender's: one message published to where nobody listens",
            "crowded_turn_ms": "32 in flight in a company of 500 seats, each prompt naming them all: the clock's time",
            "crowded_turn_cpu_ms": "the engine's processor time for each of these",
            "first_request_ms": "from a wake in an idle seat's inbox to the frame before the model's first request",
            "loop_stall_p999_ms": "32 turns in flight on 500 seats: how late the loop comes at 99.9 of 100 looks",
            "loop_stall_worst_ms": "the same, the latest of all",
            "loop_stall_own_p999_ms": "the first of these, without what the thread waited for a processor",
            "loop_stall_own_worst_ms": "the second, likewise",
        },
        _rate,
    ),
)
