"""What the tests of hauls share: events of conversations, and a handler that keeps each partition it was handed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from crewlet.events import Event
from crewlet.queue import Ack, Batch, Outcome
from crewlet.testing import wait_until

REASONABLE_S = 10.0
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


class BatchRecorder:
    """Keeps what it was handed; answers as it is told by partition, one answer a call, then ``Ack``."""

    def __init__(self, **outcomes: list[Outcome | Exception]) -> None:
        self.batches: list[Batch] = []
        self.started_at: list[float] = []
        self.running: int = 0
        self.most_running: int = 0
        self._outcomes = {key: [*answers] for key, answers in outcomes.items()}

    @property
    def ids(self) -> list[list[str]]:
        return [[delivery.event.id for delivery in batch.deliveries] for batch in self.batches]

    @property
    def headrooms(self) -> dict[str, list[int]]:
        """Of each event, the headroom at each of its deliveries."""
        seen: dict[str, list[int]] = {}
        for batch in self.batches:
            for delivery in batch.deliveries:
                seen.setdefault(delivery.event.id, []).append(delivery.headroom)
        return seen

    async def __call__(self, batch: Batch) -> Outcome:
        self.batches.append(batch)
        self.started_at.append(asyncio.get_running_loop().time())
        answers = self._outcomes.get(batch.key, [])
        outcome = answers.pop(0) if answers else Ack()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def handled(self, count: int) -> None:
        await wait_until(
            lambda: len(self.batches) >= count, what=f"{count} partitions ({self.ids})", timeout_s=REASONABLE_S
        )


class GatedBatches(BatchRecorder):
    """Stays in each call until it is let through."""

    def __init__(self, **outcomes: list[Outcome | Exception]) -> None:
        super().__init__(**outcomes)
        self.gate = asyncio.Event()

    async def __call__(self, batch: Batch) -> Outcome:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            outcome = await super().__call__(batch)
            await self.gate.wait()
        finally:
            self.running -= 1
        return outcome
