"""What the queue's figures share: clients on one broker, events of one size, sides that take turns."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Final

from nats.aio.client import Client
from nats.js import JetStreamContext

from crewlet import topics
from crewlet.backends.nats import EmbeddedBroker, JetStream, connect
from crewlet.backends.nats.queue import JetStreamQueue
from crewlet.events import Event, encode
from crewlet.queue import Subscription

__all__ = [
    "BROKERS_OWN_INTERVAL_S",
    "EVENT_BYTES",
    "Counted",
    "OurClient",
    "Side",
    "bare_client",
    "event_of",
    "fill",
    "in_turns",
    "inbox",
    "many_at_once",
    "our_client",
]

BROKERS_OWN_INTERVAL_S: Final = 120.0
"""How seldom a broker syncs its files unless it is told otherwise."""
EVENT_BYTES: Final = 500
_DEADLINE_S: Final = 120.0
_AT: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)

Side = Callable[[], Awaitable[float]]
"""One slice of one side's work; returns what it took."""


@dataclass(frozen=True, slots=True)
class OurClient:
    """One node's worth of client."""

    queue: JetStreamQueue
    api: JetStream


@asynccontextmanager
async def our_client(broker: EmbeddedBroker, name: str = "ours") -> AsyncGenerator[OurClient]:
    """The queue on a connection of its own, its streams made."""
    wire = await connect(broker.urls, seed=broker.seed, name=name)
    api = JetStream(wire)
    queue = JetStreamQueue(wire, api, node=name, storage=broker.storage)
    try:
        await queue.start()
        yield OurClient(queue, api)
    finally:
        await queue.close()
        await wire.close()


@asynccontextmanager
async def bare_client(broker: EmbeddedBroker) -> AsyncGenerator[JetStreamContext]:
    """nats-py as it comes."""
    client = Client()
    await client.connect(broker.url, nkeys_seed_str=broker.seed)
    try:
        yield client.jetstream()  # pyright: ignore[reportUnknownMemberType]
    finally:
        await client.close()


class Counted:
    """What handlers have been given; :meth:`reached` says when it is enough."""

    def __init__(self) -> None:
        self.count = 0
        self._goal = 0
        self._there = asyncio.Event()

    def expect(self, more: int) -> None:
        """Count anew, up to ``more``."""
        self.count, self._goal = 0, more
        self._there.clear()

    def add(self, number: int = 1) -> None:
        """So many more."""
        self.count += number
        if self.count >= self._goal:
            self._there.set()

    async def reached(self) -> None:
        """Return once all that was expected is there. Raises ``TimeoutError``."""
        async with asyncio.timeout(_DEADLINE_S):
            await self._there.wait()


async def in_turns(slices: int, *sides: Side) -> list[float]:
    """The median of each side's slices; the sides take turns, each as often first as the others."""
    taken: list[list[float]] = [[] for _ in sides]
    for number in range(slices + 1):
        order = [(number + offset) % len(sides) for offset in range(len(sides))]
        for index in order:
            took = await sides[index]()
            if number:  # the first round warms up
                taken[index].append(took)
    return [statistics.median(each) for each in taken]


async def many_at_once(calls: Sequence[Callable[[], Awaitable[object]]], in_flight: int) -> None:
    """Make all calls, never more than ``in_flight`` of them at a time."""
    left = iter(calls)

    async def work() -> None:
        for call in left:
            await call()

    await asyncio.gather(*(work() for _ in range(in_flight)))


async def fill(stream: JetStreamContext, subjects: Sequence[str], each: int, payload: bytes | None = None) -> None:
    """Publish ``each`` messages on every one of ``subjects``, in turns, with the bare client."""
    body = encode(event_of("waiting")) if payload is None else payload
    calls = [_publisher(stream, subject, body) for _ in range(each) for subject in subjects]
    await many_at_once(calls, 100)


def _publisher(stream: JetStreamContext, subject: str, body: bytes) -> Callable[[], Awaitable[object]]:
    return lambda: stream.publish(subject, body)


_unpadded = len(encode(Event(id="0" * 32, type="probe", timestamp=_AT, payload={"text": ""}).stamped("ours")))
_numbers = count()


def event_of(kind: str) -> Event:
    """An event that no other has the id of, of ``EVENT_BYTES`` as it is stored."""
    event_id = f"{kind}-{next(_numbers)}".ljust(32, "0")
    return Event(id=event_id, type="probe", timestamp=_AT, payload={"text": "x" * (EVENT_BYTES - _unpadded)})


def inbox(name: str) -> Subscription:
    """The mailbox of a seat."""
    return Subscription(topics.agent_inbox(name), topics.inbox_group(name))
