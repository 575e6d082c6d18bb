"""The queue's suite on the twin: clients of one broker object, on a loop whose time jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar, Self

from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.queue import EventQueue, QueueConfig, Subscription
from crewlet.testing.contracts.contract import Capability
from crewlet.testing.contracts.queue_harness import SCALED, DeadLetter, QueueHarness
from crewlet.testing.virtual_time import VirtualClock

__all__ = ["MemoryHarness"]


class MemoryHarness(QueueHarness):
    """Twins on one broker object. ``sabotage`` plants a fault into each client as it is made."""

    backend: ClassVar[str] = "twin"
    absent: ClassVar[frozenset[Capability]] = frozenset({Capability.TIMED_BACKOFF})

    def __init__(
        self, config: QueueConfig = SCALED, *, sabotage: Callable[[MemoryQueue], EventQueue] = lambda twin: twin
    ) -> None:
        super().__init__(config)
        self._broker = MemoryBroker(VirtualClock())
        self._sabotage = sabotage
        self._twins: dict[EventQueue, MemoryQueue] = {}

    async def __aenter__(self) -> Self:
        """Nothing has to be made first."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every client."""
        for client, twin in self._twins.items():
            await client.close()
            await twin.close()

    async def client(self, node: str = "one") -> EventQueue:
        """A client of the broker object."""
        twin = MemoryQueue(self._broker, node=node, config=self.config)
        client = self._sabotage(twin)
        self._twins[client] = twin
        return client

    async def crash(self, client: EventQueue) -> None:
        """The twin knows how to die."""
        self._twins[client].crash()

    async def advance(self, seconds: float) -> None:
        """The loop jumps."""
        await asyncio.sleep(seconds)

    def now_s(self) -> float:
        """The loop's clock."""
        return asyncio.get_running_loop().time()

    async def disturb(self) -> None:
        """There is nothing to survive."""

    async def publish_raw(self, topic: str, payload: bytes) -> None:
        """Store the bytes."""
        self._broker.publish_raw(topic, payload)

    async def retained(self, topic: str) -> int:
        """Each message once, however many mailboxes keep it."""
        mailboxes = self._broker.mailboxes(topic)
        return len({mail.message.sequence for mailbox in mailboxes for mail in self._broker.retained(mailbox)})

    async def held(self, subscription: Subscription) -> int:
        """What somebody holds."""
        return len(self._broker.held(subscription))

    async def dead_letters(self, subscription: Subscription) -> list[DeadLetter]:
        """What the broker object buried."""
        letters = self._broker.dead_letters(subscription)
        return [DeadLetter(letter.payload, letter.topic, letter.group, letter.deliveries) for letter in letters]
