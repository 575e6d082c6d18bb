"""One process's clients of broker and store: a step before and after each write, at which the process may end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.backends.memory.record_link import MemoryLink
from crewlet.base.errors import Unavailable
from crewlet.events import Event
from crewlet.queue import QueueConfig

__all__ = ["SteppedLink", "SteppedQueue"]

_T = TypeVar("_T")


class SteppedLink(MemoryLink):
    """A link to buckets or logs."""

    def __init__(self, step: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._step = step

    async def pass_over(self, slot: str) -> None:
        """One way over the link, after a step. Raises ``Unavailable``."""
        await self._step()
        await super().pass_over(slot)

    async def write(self, slot: str, write: Callable[[], _T], *, landed: Callable[[_T | None], bool]) -> _T:
        """Carry one write over, then a step. Raises what it raises, and ``Unavailable``."""
        written = await super().write(slot, write, landed=landed)
        await self._step()
        return written


class SteppedQueue(MemoryQueue):
    """A client of the broker."""

    def __init__(
        self, broker: MemoryBroker, *, node: str, config: QueueConfig, step: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(broker, node=node, config=config)
        self._step = step
        self.loses_replies = 0
        """How many of the next publishes are stored, and nobody hears of it."""

    async def publish(self, topic: str, event: Event) -> Event:
        """Store and tell, between two steps. Raises ``Unavailable``."""
        await self._step()
        stamped = await super().publish(topic, event)
        await self._step()
        if self.loses_replies:
            self.loses_replies -= 1
            raise Unavailable(f"{topic}: whether it was stored is not known")
        return stamped
