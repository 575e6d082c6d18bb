"""What the tests of the queue's twin share: clients of one broker, a worker that answers as told, a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from crewlet import topics
from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.events import Event
from crewlet.queue import Ack, Batch, Delivery, Outcome, QueueConfig, Subscription
from crewlet.testing import VirtualClock

CONFIG = QueueConfig(ack_wait_s=30.0, max_deliver=4)
INBOX = Subscription(topics.agent_inbox("ada"), topics.inbox_group("ada"))
AT = datetime(2030, 1, 1, tzinfo=UTC)
MOMENT_S = 0.01


class Company:
    """Clients of one broker, all closed at the end."""

    def __init__(self) -> None:
        self.broker = MemoryBroker(VirtualClock())
        self.clients: list[MemoryQueue] = []

    def client(self, node: str = "one", config: QueueConfig = CONFIG) -> MemoryQueue:
        self.clients.append(MemoryQueue(self.broker, node=node, config=config))
        return self.clients[-1]


class Worker:
    """A handler that keeps what it was handed, and answers in turn; without an answer it stays until released."""

    def __init__(self, *outcomes: Outcome, stays: bool = False) -> None:
        self.deliveries: list[Delivery] = []
        self.release = asyncio.Event()
        self._outcomes = [*outcomes]
        self._stays = stays

    @property
    def ids(self) -> list[str]:
        return [delivery.event.id for delivery in self.deliveries]

    @property
    def headrooms(self) -> list[int]:
        return [delivery.headroom for delivery in self.deliveries]

    async def __call__(self, delivery: Delivery) -> Outcome:
        self.deliveries.append(delivery)
        if self._stays:
            await self.release.wait()
        return self._outcomes.pop(0) if self._outcomes else Ack()

    async def batch(self, batch: Batch) -> Outcome:
        self.deliveries += batch.deliveries
        if self._stays:
            await self.release.wait()
        return self._outcomes.pop(0) if self._outcomes else Ack()


def event(event_id: str, **payload: object) -> Event:
    return Event(id=event_id, type="probe", timestamp=AT, payload=payload)


async def publish(client: MemoryQueue, *ids: str, topic: str = INBOX.topic) -> None:
    for event_id in ids:
        await client.publish(topic, event(event_id))


async def moment(seconds: float = MOMENT_S) -> None:
    """All that can happen now has happened; time stands as good as still."""
    await asyncio.sleep(seconds)


@asynccontextmanager
async def running_company() -> AsyncGenerator[Company]:
    """A company whose clients have all ended at its end, with every task of theirs."""
    company = Company()
    yield company
    for client in company.clients:
        await client.close()
    assert [client.task_count for client in company.clients] == [0] * len(company.clients)
