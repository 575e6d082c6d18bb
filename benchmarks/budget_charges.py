"""What a charge of tokens costs beside the bare client's reads and updates of the same two records."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

import uvloop
from nats.js import JetStreamContext
from nats.js.errors import BadRequestError, NotFoundError

from benchmarks.figures import Figure, Measurement, Sizes, figure
from benchmarks.queue_rig import bare_client, in_turns, many_at_once
from crewlet import topics
from crewlet.backends.nats import EmbeddedBroker, JetStream, open_bucket
from crewlet.base.ids import RandomIds
from crewlet.coordination import BUDGETS, Budgets, Ceilings, Spend, windows_at
from crewlet.testing.brokers import connected_wire, running_broker

__all__ = ["MEASUREMENTS"]

_CROWD: Final = 32
_NODES: Final = 4
_BUCKET: Final = topics.bucket(BUDGETS.name)
_BARE_SHARE: Final = 0.7
_WINDOWS: Final = windows_at(datetime(2026, 9, 23, 12, tzinfo=UTC), ZoneInfo("Europe/Paris"))
_AMPLE: Final = Ceilings(day=10**12, month=10**12)
_PAIR: Final = "nats-py: read from the leader and update, {}"
_RECORD_BYTES: Final = 1200
"""About what a record with a crowd's lanes takes."""


_Call = Callable[[], Awaitable[object]]
_numbers = itertools.count(1)


def _charges(sizes: Sizes) -> Sequence[Figure]:
    return uvloop.run(_measure(sizes))


async def _measure(sizes: Sizes) -> Sequence[Figure]:
    number = max(sizes.published // 2, _CROWD)
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker())
        nodes = [await stack.enter_async_context(_node(broker)) for _ in range(_NODES)]
        bares = [await stack.enter_async_context(bare_client(broker)) for _ in range(_NODES)]
        alone = await in_turns(
            sizes.slices,
            lambda: _timed(_charges_of(nodes[:1], number, "ada", lanes=1), 1),
            lambda: _timed(_pairs_of(bares[:1], number, "floor.company", "floor.seat"), 1),
        )
        crowd = await in_turns(
            sizes.slices,
            lambda: _timed(_charges_of(nodes[:1], number, "", lanes=_CROWD), _CROWD),
            lambda: _timed(_pairs_of(bares[:1], number, "floor.company"), 1),
        )
        fleet = await in_turns(
            sizes.slices,
            lambda: _timed(_charges_of(nodes, number, "", lanes=_CROWD), _CROWD),
            lambda: _timed(_pairs_of(bares, number, "floor.company"), _NODES),
        )
    return [
        _figure("budget_charge_us", alone, _PAIR.format("two records"), _BARE_SHARE),
        _figure("budget_charge_crowd_us", crowd, _PAIR.format("one after another"), 1.0),
        _figure("budget_charge_fleet_us", fleet, _PAIR.format("four clients, each again until it wins"), None),
    ]


@asynccontextmanager
async def _node(broker: EmbeddedBroker) -> AsyncGenerator[Budgets]:
    async with connected_wire(broker) as wire:
        opened = await open_bucket(JetStream(wire), BUDGETS, storage="file", ids=RandomIds())
        budgets = Budgets(opened.store, Random(1))
        try:
            yield budgets
        finally:
            await budgets.close()


def _charges_of(nodes: Sequence[Budgets], number: int, agent_id: str, *, lanes: int) -> list[_Call]:
    """So many charges, spread over the nodes and their lanes."""

    def charge(place: int) -> _Call:
        lane = place % lanes
        spend = Spend(tokens=1000, lane=f"turn{lane}", number=next(_numbers), agent_id=agent_id)
        node = nodes[lane % len(nodes)]
        return lambda: node.charge(spend, windows=lambda: _WINDOWS, company=_AMPLE, seat=_AMPLE)

    return [charge(place) for place in range(number)]


def _pairs_of(bares: Sequence[JetStreamContext], number: int, *keys: str) -> list[_Call]:
    """So many times a pair for each of ``keys``, spread over the clients."""
    subjects = [topics.bucket_subject(_BUCKET, key) for key in keys]

    def pairs(bare: JetStreamContext) -> _Call:
        async def call() -> None:
            for subject in subjects:
                while not await _updated(bare, subject):
                    continue

        return call

    return [pairs(bares[place % len(bares)]) for place in range(number)]


async def _updated(bare: JetStreamContext, subject: str) -> bool:
    try:
        found = await bare.get_last_msg(topics.bucket_stream(_BUCKET), subject)
        expected = found.seq or 0
    except NotFoundError:
        expected = 0
    try:
        headers = {"Nats-Expected-Last-Subject-Sequence": str(expected)}
        await bare.publish(subject, bytes(_RECORD_BYTES), headers=headers)
    except BadRequestError:
        return False
    return True


async def _timed(calls: Sequence[_Call], in_flight: int) -> float:
    began_s = time.perf_counter()
    await many_at_once(calls, in_flight)
    return (time.perf_counter() - began_s) / len(calls) * 1e6


def _figure(name: str, taken: Sequence[float], floor_name: str, share: float | None) -> Figure:
    our_us, bare_us = taken
    return figure(
        name, our_us, "µs", floor=bare_us, floor_name=floor_name, bound=None if share is None else bare_us / share
    )


MEASUREMENTS: Final = (
    Measurement(
        "budget_charges",
        {
            "budget_charge_us": "a charge of tokens in the company's record and in the seat's, alone",
            "budget_charge_crowd_us": "a charge of tokens in the company's record, 32 turns at once",
            "budget_charge_fleet_us": "a charge of tokens in the company's record, 32 turns on four nodes at once",
        },
        _charges,
    ),
)
