"""What a duty and a chore are to whoever runs them, and how one stands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from crewlet.base.clock import Clock
from crewlet.base.errors import Fenced
from crewlet.base.fence import Fence
from crewlet.duties.table import DutyTimes

__all__ = ["Chore", "Duty", "DutyFence", "DutyStatus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """Work of the company, done by one node at a time.

    ``work`` checks its fence before whatever it changes for others, and raises where it could not do all of its work:
    then a peer may try. ``withheld``: why this node should not even claim it now; empty where it may.
    """

    times: DutyTimes
    work: Callable[[Fence], Awaitable[None]]
    withheld: Callable[[], str] = str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """Work that every node does for itself, under no lease: its own tables, its own caches."""

    name: str
    every_s: float
    work: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyStatus:
    """How a duty or a chore stands on this node.

    ``held``: this node has the lease (a chore is always its own). ``worked_at``: when its work last ended well here.
    ``running_for_s`` is ``None`` between ticks. ``failures`` in a row, of which ``error`` is the last.
    """

    name: str
    held: bool
    worked_at: datetime | None
    running_for_s: float | None
    overdue: bool
    failures: int
    error: str


class DutyFence:
    """Stands until the tenure that a tick works under may have ended; the time that the machine slept counts."""

    def __init__(self, clock: Clock, *, name: str, epoch: int, until_s: float) -> None:
        self._clock = clock
        self._name = name
        self._epoch = epoch
        self._until_s = until_s

    @property
    def epoch(self) -> int:
        """The epoch of the duty's lease."""
        return self._epoch

    def check(self) -> None:
        """Raise ``Fenced`` once a peer may have the duty."""
        if self._clock.elapsed_s() >= self._until_s:
            raise Fenced(f"the duty {self._name} may be a peer's by now (epoch {self._epoch} is over)")
