"""Only a mailbox's consumer changes its leader: what is in flight is settled, nothing is lost or at work twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from crewlet import topics
from crewlet.queue import Ack, Batch, BatchOptions, Delivery, EventQueue, Nak, Outcome
from crewlet.testing import wait_until
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts import SCALED, event
from crewlet.testing.contracts.queue_on_jetstream import ClusterHarness

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(180)]

MOVES = 6


class Workers:
    """Handlers that stay in each call until a turn is given out, and see whether a message is at work twice."""

    def __init__(self) -> None:
        self.turns = asyncio.Semaphore(0)
        self.at_work: Counter[str] = Counter()
        self.twice: list[str] = []
        self.done: list[str] = []
        self._failed: set[str] = set()

    async def one(self, delivery: Delivery) -> Outcome:
        return await self._work([delivery])

    async def batch(self, batch: Batch) -> Outcome:
        return await self._work(batch.deliveries)

    async def attach(self, client: EventQueue, queue: ClusterHarness, *, hauls: bool) -> None:
        if hauls:
            options = BatchOptions(max_events=3)
            await client.subscribe_batch(
                queue.inbox(), self.batch, partition=lambda event: event.id[-1], options=lambda: options
            )
        else:
            await client.subscribe(queue.inbox(), self.one)

    async def _work(self, deliveries: tuple[Delivery, ...] | list[Delivery]) -> Outcome:
        ids = [delivery.event.id for delivery in deliveries]
        self.twice += [event_id for event_id in ids if self.at_work[event_id]]
        self.at_work.update(ids)
        await self.turns.acquire()
        self.at_work.subtract(ids)
        if any(event_id.startswith("fails") for event_id in {*ids} - self._failed):
            self._failed.update(ids)
            return Nak("the first time")
        self.done += ids
        return Ack()


@pytest.mark.parametrize("hauls", [False, True], ids=["single", "hauls"])
async def test_what_is_in_flight_when_a_consumers_leader_moves_is_worked_and_never_twice_at_once(
    three_members: Cluster, hauls: bool
) -> None:
    async with ClusterHarness(three_members, replace(SCALED, ack_wait_s=5.0)) as queue:
        workers, clients = Workers(), [await queue.client("one"), await queue.client("two")]
        inbox, stream = queue.inbox(), topics.STREAM_AGENT
        consumer = topics.durable_name(inbox.topic, inbox.group)
        for client in clients:
            await workers.attach(client, queue, hauls=hauls)
        leaders = {await three_members.consumer_leader(queue.api, stream, consumer)}

        published: list[str] = []
        for move in range(MOVES):
            for number in range(4):
                published.append(f"{'fails' if number == 0 else 'm'}-{move}-{number}")
                await clients[0].publish(inbox.topic, event(published[-1]))
            await wait_until(lambda: sum(workers.at_work.values()) > 0, what="a delivery in flight")
            moving = asyncio.create_task(three_members.step_consumer_down(queue.api, stream, consumer))
            for _ in range(4):
                workers.turns.release()
                await asyncio.sleep(0)
            await moving
            leaders.add(await three_members.consumer_leader(queue.api, stream, consumer))
        for _ in range(1000):
            workers.turns.release()

        await wait_until(lambda: {*workers.done} == {*published}, what="all mail worked", timeout_s=60.0)
        await queue.emptied(inbox)
        print(f"led by {sorted(leaders)}; worked again: {Counter(workers.done) - Counter(published)}")
        assert workers.twice == []
        assert len(leaders) > 1
        assert await queue.dead_letters(inbox) == []
