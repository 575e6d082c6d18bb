"""What thousands of held seats cost while nothing happens: their holder's renewals, and a peer that looks for seats."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import psutil
import uvloop
from nats.aio.client import Client
from nats.js import JetStreamContext

from benchmarks.figures import Figure, Measurement, Sizes, figure
from benchmarks.fleet_hosts import SeatHost, seat_host
from benchmarks.queue_rig import many_at_once
from benchmarks.standing_broker import StandingBroker, standing_broker
from crewlet import topics
from crewlet.base import limits
from crewlet.coordination.slots import LEASES
from crewlet.seats import HEARTBEAT

__all__ = ["MEASUREMENTS"]

_CPU_BOUND_PERCENT: Final = 5.0
_MESSAGES_BOUND: Final = 10.0
_DEADLINE_S: Final = 120.0
_HOLDER: Final = "holder"
_IDLE: Final = "idle"
_BARE: Final = "nats-py: each record read from the leader and updated once in the same time"


class _Beats:
    """Counts what a host's heartbeat says: once for each seat, then once for itself."""

    def __init__(self, seats: int) -> None:
        self._each = seats + 1
        self._count = 0
        self._turned = asyncio.Event()

    def __call__(self, loop: str) -> None:
        if loop == HEARTBEAT:
            self._count += 1
            if self._count % self._each == 0:
                self._turned.set()

    async def turned(self) -> None:
        """Return at the end of the next heartbeat."""
        self._turned.clear()
        async with asyncio.timeout(_DEADLINE_S):
            await self._turned.wait()


@dataclass(frozen=True, slots=True)
class _Spent:
    """Shares of one core."""

    ours: float
    brokers: float


def _held_seats(sizes: Sizes) -> Sequence[Figure]:
    return uvloop.run(_measure(sizes))


async def _measure(sizes: Sizes) -> Sequence[Figure]:
    beats = _Beats(sizes.held_seats)
    async with standing_broker(synced=True) as broker:
        async with seat_host(
            broker,
            _HOLDER,
            seats=sizes.held_seats,
            ttl_s=sizes.held_ttl_s,
            claims_per_sweep=sizes.held_seats,
            beat=beats,
        ) as holder:
            await holder.start()
            spent = await _heartbeats(broker, beats, sizes)
            messages = await _idle_messages(broker, holder, sizes)
            renew_every_s = sizes.held_ttl_s / 3 * limits.RENEW_AT_FRACTION
        bare_s = await _bare_cpu_s(broker, sizes.held_seats)
    percent = 100 * spent.ours
    floor = 100 * bare_s / renew_every_s
    return [
        figure("held_seats_cpu_percent", percent, "%", floor=floor, floor_name=_BARE, bound=_CPU_BOUND_PERCENT),
        figure("held_seats_broker_cpu_percent", 100 * spent.brokers, "%"),
        figure("idle_node_messages", messages, "messages", bound=_MESSAGES_BOUND),
    ]


async def _heartbeats(broker: StandingBroker, beats: _Beats, sizes: Sizes) -> _Spent:
    """Over whole heartbeats, from the end of one to the end of another; sweeps are in there too."""
    process = psutil.Process(broker.pid)
    await beats.turned()
    began_s, ours_s, brokers_s = time.perf_counter(), time.process_time(), _cpu_s(process)
    for _ in range(sizes.heartbeats):
        await beats.turned()
    took_s = time.perf_counter() - began_s
    return _Spent((time.process_time() - ours_s) / took_s, (_cpu_s(process) - brokers_s) / took_s)


async def _idle_messages(broker: StandingBroker, holder: SeatHost, sizes: Sizes) -> float:
    """What a second node is sent in a sweep's time, with room for a half of the seats and every one of them held."""
    # It keeps what it holds from here on, and its peer's share stays free.
    holder.host.drain()
    async with seat_host(broker, _IDLE, seats=sizes.held_seats, ttl_s=sizes.held_ttl_s) as idle:
        await idle.start()
        before = await broker.traffic(_IDLE)
        began_s = time.perf_counter()
        await asyncio.sleep(sizes.idle_sweeps * limits.SEAT_SWEEP_EVERY_S)
        after = await broker.traffic(_IDLE)
        sweeps = (time.perf_counter() - began_s) / limits.SEAT_SWEEP_EVERY_S
        assert not idle.host.held(), "every seat is held by the other"
        return (after.received - before.received) / sweeps


async def _bare_cpu_s(broker: StandingBroker, seats: int) -> float:
    client = Client()
    await client.connect(broker.url, token=broker.token)
    try:
        stream = client.jetstream()  # pyright: ignore[reportUnknownMemberType]
        bucket = topics.bucket(LEASES.name)
        subjects = [topics.bucket_subject(bucket, f"seat.bare-{number}") for number in range(seats)]
        value = b"x" * 300
        await many_at_once([partial(stream.publish, subject, value) for subject in subjects], limits.RENEWS_AT_ONCE)
        updates: list[Callable[[], Awaitable[object]]] = [
            partial(_update, stream, topics.bucket_stream(bucket), subject, value) for subject in subjects
        ]
        began_s = time.process_time()
        await many_at_once(updates, limits.RENEWS_AT_ONCE)
        return time.process_time() - began_s
    finally:
        await client.close()


async def _update(stream: JetStreamContext, name: str, subject: str, value: bytes) -> None:
    found = await stream.get_last_msg(name, subject)
    await stream.publish(subject, value, headers={"Nats-Expected-Last-Subject-Sequence": str(found.seq)})


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


MEASUREMENTS: Final = (
    Measurement(
        "held_seats",
        {
            "held_seats_cpu_percent": "the processor time of keeping 2,000 held seats: all renewals and sweeps of one"
            " node, of one core, lease TTL 45 s",
            "held_seats_broker_cpu_percent": "the broker's own for keeping 2,000 held seats",
            "idle_node_messages": "messages that a node with room is sent in a sweep's time, every seat held elsewhere",
        },
        _held_seats,
    ),
)
