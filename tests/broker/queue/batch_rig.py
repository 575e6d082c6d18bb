"""What the tests of hauls share: events of conversations, and a handler that waits to be let through."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from crewlet.events import Event
from crewlet.queue import Batch, Outcome
from crewlet.testing.contracts.queue_handlers import BatchRecorder

_START = datetime(2026, 1, 1, tzinfo=UTC)


def said(event_id: str, *, at_s: float = 0.0) -> Event:
    """An event of the conversation that its id begins with: ``a1`` and ``a2`` belong to ``a``."""
    return Event(id=event_id, type="probe", timestamp=_START + timedelta(seconds=at_s), payload={})


def conversation(event: Event) -> str:
    return event.id[0]


async def lapse(seconds: float) -> None:
    """Let the broker's own clock run so far: it says nothing when a backoff or an ack window ends."""
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, over.set)
    await over.wait()


class GatedBatches(BatchRecorder):
    """Stays in each call until it is let through."""

    def __init__(self, **outcomes: list[Outcome | Exception]) -> None:
        super().__init__(**outcomes)
        self.gate = asyncio.Event()
        self.running: int = 0
        self.most_running: int = 0

    async def __call__(self, batch: Batch) -> Outcome:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            outcome = await super().__call__(batch)
            await self.gate.wait()
        finally:
            self.running -= 1
        return outcome
