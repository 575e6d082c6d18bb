"""A client of the queue that passes everything on to a twin; each saboteur changes one thing about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from crewlet.backends.memory import MemoryQueue
from crewlet.base.tasks import Tasks
from crewlet.events import Event
from crewlet.queue import (
    Batch,
    BatchHandler,
    BatchOptions,
    Delivery,
    EventQueue,
    Handler,
    Outcome,
    PartitionKey,
    Subscription,
)

__all__ = ["OutcomeFault", "QueueSaboteur", "Shared", "planted"]


@dataclass(slots=True)
class Shared:
    """What the saboteurs of one broker know together."""

    clients: list[QueueSaboteur] = field(default_factory=list["QueueSaboteur"])
    published: list[tuple[str, Event]] = field(default_factory=list[tuple[str, Event]])
    names: set[tuple[Subscription, str]] = field(default_factory=set[tuple[Subscription, str]])


class QueueSaboteur:
    """Whatever a saboteur does not define goes to the twin. ``caught_by`` is the promise that must find it out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]

    def __init__(self, twin: MemoryQueue, shared: Shared) -> None:
        self.twin = twin
        self.shared = shared
        self.tasks = Tasks("saboteur")
        shared.clients.append(self)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the twin's verb, whatever it is
        """The twin's own verb."""
        return getattr(self.twin, name)

    async def close(self) -> None:
        """End what the saboteur began, and the twin."""
        await self.tasks.close()
        await self.twin.close()


class OutcomeFault(QueueSaboteur):
    """A saboteur between the twin and its handlers: it changes what they are handed, or what they answer."""

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        """Attach with a handler in between."""

        async def between(delivery: Delivery) -> Outcome:
            return await self.answered(subscription, [delivery], handler(self.handed(delivery)))

        await self.twin.subscribe(subscription, between)

    async def subscribe_batch(
        self,
        subscription: Subscription,
        handler: BatchHandler,
        *,
        partition: PartitionKey,
        options: Callable[[], BatchOptions] = BatchOptions,
    ) -> None:
        """Attach with a handler in between."""

        async def between(batch: Batch) -> Outcome:
            handed = Batch(subscription, batch.key, tuple(self.handed(each) for each in batch.deliveries))
            return await self.answered(subscription, [*batch.deliveries], handler(handed))

        await self.twin.subscribe_batch(subscription, between, partition=partition, options=options)

    def handed(self, delivery: Delivery) -> Delivery:
        """What the handler is handed."""
        return delivery

    async def answered(
        self, subscription: Subscription, deliveries: list[Delivery], answer: Awaitable[Outcome]
    ) -> Outcome:
        """What the twin hears."""
        return await answer


def planted(kind: type[QueueSaboteur]) -> Callable[[MemoryQueue], EventQueue]:
    """What turns each twin of one broker into a saboteur of this kind."""
    shared = Shared()
    return lambda twin: cast("EventQueue", kind(twin, shared))
