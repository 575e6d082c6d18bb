"""Seeded days of a company on the queue's twin: handlers fail, clients vanish, and checkers look at the end."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from crewlet import topics
from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.base.errors import Unavailable
from crewlet.queue import Ack, Batch, BatchHandler, BatchOptions, Defer, Nak, Outcome, QueueConfig, Subscription
from crewlet.testing import VirtualClock, run_virtual
from tests.unit.backends.memory_queue_rig import Worker, event, publish

CONFIG = QueueConfig(ack_wait_s=300.0, max_deliver=6)
SEATS = tuple(Subscription(topics.agent_inbox(f"s{n}"), topics.inbox_group(f"s{n}")) for n in range(4))
STEPS = 200
LONGEST_TURN_S = 20.0


@dataclass
class Ledger:
    """What was promised, and what became of it."""

    published: set[str] = field(default_factory=set[str])
    acknowledged: set[str] = field(default_factory=set[str])
    at_work: Counter[str] = field(default_factory=Counter[str])
    worked_by_two: list[str] = field(default_factory=list[str])


class Day:
    """One program, drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.ledger = Ledger()
        self.broker = MemoryBroker(VirtualClock())
        self.clients = [self.client(f"node-{n}") for n in range(3)]
        self.dead: list[MemoryQueue] = []

    def client(self, node: str) -> MemoryQueue:
        return MemoryQueue(self.broker, node=node, config=CONFIG)

    async def run(self) -> None:
        for seat in SEATS:
            await self.clients[0].ensure_subscription(seat)
        for _ in range(STEPS):
            with contextlib.suppress(Unavailable, ValueError):
                await self.step(self.chance.randrange(len(self.clients)), self.chance.choice(SEATS))
            await asyncio.sleep(self.chance.choice([0.0, 0.5, 3.0]))
        for client in self.clients:
            client.heal()
            await client.close()

    async def step(self, place: int, seat: Subscription) -> None:
        client = self.clients[place]
        match self.chance.choices(range(7), [30, 15, 25, 10, 2, 2, 4])[0]:
            case 0:
                event_id = f"e{len(self.ledger.published)}"
                await client.publish(seat.topic, event(event_id))
                self.ledger.published.add(event_id)
            case 1:
                await self.attach(client, seat)
            case 2:
                await client.lift(seat, "pause")
                await client.unquiesce(seat)
            case 3:
                await client.hold(seat, "pause")
                await client.wait_idle(seat)
                await client.detach(seat)
            case 4:
                client.crash()
                self.dead.append(client)
                self.clients[place] = self.client(f"{client.node}+")
            case 5:
                client.cut()
            case _:
                client.heal()

    async def attach(self, client: MemoryQueue, seat: Subscription) -> None:
        options = BatchOptions(linger_s=self.chance.choice([0.0, 2.0]), max_events=self.chance.randint(1, 8))
        await client.subscribe_batch(seat, self.worker(), partition=lambda found: found.id[-1], options=lambda: options)

    def worker(self) -> BatchHandler:
        ledger = self.ledger

        async def work(batch: Batch) -> Outcome:
            ids = [delivery.event.id for delivery in batch.deliveries]
            ledger.at_work.update(ids)
            ledger.worked_by_two += [event_id for event_id in ids if ledger.at_work[event_id] > 1]
            try:
                await asyncio.sleep(self.chance.choice([0.0, 0.0, LONGEST_TURN_S]))
                outcome = self.chance.choice([Ack(), Ack(), Nak(), Defer("the lease moved")])
            finally:
                ledger.at_work.subtract(ids)
            if isinstance(outcome, Ack):
                ledger.acknowledged.update(ids)
            return outcome

        return work


@pytest.mark.slow
def test_no_publish_is_lost_doubled_or_worked_by_two_at_once() -> None:
    for seed in range(60):
        run_virtual(check_a_day(seed))


async def check_a_day(seed: int) -> None:
    day = Day(seed)
    await day.run()
    # Whatever a vanished client held has come back by now.
    await asyncio.sleep(CONFIG.ack_wait_s)
    heir, last = day.client("heir"), Worker()
    for seat in SEATS:
        await heir.subscribe(seat, last)
    await publish(heir, "last", topic=SEATS[0].topic)
    await asyncio.sleep(1.0)
    await heir.close()

    buried = [letter.event.id for letter in day.broker.dead_letters() if letter.event]
    ended = day.ledger.acknowledged | {*buried, *last.ids}
    assert (seed, day.ledger.published - ended) == (seed, set())
    assert (seed, day.ledger.worked_by_two) == (seed, [])
    assert (seed, len(buried)) == (seed, len({*buried}))
    assert (seed, sorted(last.ids)) == (seed, sorted({*last.ids}))
    assert (seed, day.broker.log(topics.STREAM_AGENT)) == (seed, [])
    assert (seed, [client.task_count for client in [*day.clients, *day.dead, heir] if client.task_count]) == (seed, [])
