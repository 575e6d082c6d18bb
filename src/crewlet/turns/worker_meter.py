"""The share of its seat's tokens that the workers of one call may spend together."""

from __future__ import annotations

from collections.abc import Callable

from crewlet.turns.delegated_tasks import TaskEnded, TaskStatus
from crewlet.turns.meter import Meter, Spent

__all__ = ["ShareMeter", "share_of"]


def share_of(remaining: int | None, fraction: float) -> int | None:
    """The tokens of one call's workers; ``None`` where nothing limits the seat."""
    return None if remaining is None else int(remaining * fraction)


class ShareMeter:
    """Counts what it passes on to the seat's meter. The reply that goes over the share is counted, and is the last."""

    def __init__(self, meter: Meter, share: int | None) -> None:
        self._meter = meter
        self._share = share
        self._spent = 0

    @property
    def left(self) -> int | None:
        """What may still be spent."""
        return None if self._share is None else max(self._share - self._spent, 0)

    async def admit(self) -> None:
        """Raises ``TaskEnded`` once the share is spent, and what the seat's meter raises."""
        if self.left == 0:
            raise TaskEnded(TaskStatus.BUDGET_EXHAUSTED, f"the workers' share of {self._share} tokens is spent")
        await self._meter.admit()

    async def charge(self, spent: Spent, check: Callable[[], None]) -> None:
        """As the seat's meter."""
        self._spent += spent.usage.total
        await self._meter.charge(spent, check)

    async def remaining(self) -> int | None:
        """Of the share."""
        return self.left
