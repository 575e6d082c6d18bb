"""Handlers for the queue's suite: they keep what they were handed, and answer as they were told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from crewlet.queue import Ack, Batch, Delivery, Outcome
from crewlet.testing.waiting import wait_until

__all__ = ["BatchRecorder", "Busy", "Recorder"]

_REASONABLE_S = 15.0

Clock = Callable[[], float]


class Recorder:
    """A handler that keeps its deliveries and answers with a list of outcomes, then ``Ack``."""

    def __init__(self, *outcomes: Outcome | Exception) -> None:
        self.deliveries: list[Delivery] = []
        self.started_at_s: list[float] = []
        self._outcomes = [*outcomes]

    @property
    def ids(self) -> list[str]:
        """The ids of the events handed over, in order."""
        return [delivery.event.id for delivery in self.deliveries]

    @property
    def headrooms(self) -> list[int]:
        """What each delivery said about its headroom, in order."""
        return [delivery.headroom for delivery in self.deliveries]

    async def __call__(self, delivery: Delivery) -> Outcome:
        """Keep it and answer."""
        self.deliveries.append(delivery)
        self.started_at_s.append(asyncio.get_running_loop().time())
        return _answer(self._outcomes)

    async def handled(self, count: int) -> None:
        """Return once it was handed ``count`` deliveries. Raises ``TimeoutError`` with what it has."""
        await _reached(lambda: len(self.deliveries) >= count, lambda: f"{count} deliveries ({self.ids})")


class Busy:
    """A handler that stays in each delivery until :attr:`release` is set."""

    def __init__(self, outcome: Outcome | None = None) -> None:
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.ids: list[str] = []
        self.finished = 0
        self._outcome = outcome or Ack()

    async def __call__(self, delivery: Delivery) -> Outcome:
        """Keep it, and answer once released."""
        self.ids.append(delivery.event.id)
        self.entered.set()
        await self.release.wait()
        self.finished += 1
        return self._outcome

    async def at_work(self) -> None:
        """Return once it is inside a delivery. Raises ``TimeoutError``."""
        async with asyncio.timeout(_REASONABLE_S):
            await self.entered.wait()


class BatchRecorder:
    """A batch handler that keeps its partitions and answers with a list of outcomes, then ``Ack``.

    A partition whose key is named has a list of its own.
    """

    def __init__(self, *outcomes: Outcome | Exception, **by_key: list[Outcome | Exception]) -> None:
        self.batches: list[Batch] = []
        self.started_at_s: list[float] = []
        self._outcomes = [*outcomes]
        self._by_key = {key: [*answers] for key, answers in by_key.items()}

    @property
    def ids(self) -> list[list[str]]:
        """The ids of each partition handed over, in order."""
        return [[delivery.event.id for delivery in batch.deliveries] for batch in self.batches]

    @property
    def keys(self) -> list[str]:
        """The key of each partition handed over, in order."""
        return [batch.key for batch in self.batches]

    @property
    def headrooms(self) -> dict[str, list[int]]:
        """Of each event, the headroom at each of its deliveries."""
        seen: dict[str, list[int]] = {}
        for batch in self.batches:
            for delivery in batch.deliveries:
                seen.setdefault(delivery.event.id, []).append(delivery.headroom)
        return seen

    async def __call__(self, batch: Batch) -> Outcome:
        """Keep it and answer."""
        self.batches.append(batch)
        self.started_at_s.append(asyncio.get_running_loop().time())
        return _answer(self._by_key.get(batch.key, self._outcomes))

    async def handled(self, count: int) -> None:
        """Return once it was handed ``count`` partitions. Raises ``TimeoutError`` with what it has."""
        await _reached(lambda: len(self.batches) >= count, lambda: f"{count} partitions ({self.ids})")


def _answer(outcomes: list[Outcome | Exception]) -> Outcome:
    outcome = outcomes.pop(0) if outcomes else Ack()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def _reached(holds: Callable[[], bool], what: Callable[[], str]) -> None:
    try:
        await wait_until(holds, timeout_s=_REASONABLE_S)
    except TimeoutError as error:
        raise TimeoutError(f"{what()} did not come: {error}") from error
