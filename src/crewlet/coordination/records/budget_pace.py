"""How long a process leaves a record to the others that write it, so that all of them come to their turn.

Whoever has just written would write again before any other has read what it wrote: the others lose every attempt. So
while a record is shared, each process waits after its own write, the longer the more attempts that took. The pauses
settle where at least seven of ten first attempts succeed, however many processes there are.
"""

from __future__ import annotations

from random import Random
from typing import Final

from crewlet.base import limits

__all__ = ["SharedPace"]

_LONGER: Final = 1.5
_SHORTER: Final = 0.85
_TIMES_MAX: Final = 256.0


class SharedPace:
    """One process's pace on one record. Times are the loop's, in seconds."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._times = 1.0
        self._next_s = 0.0
        self._shared_until_s = 0.0

    def is_shared(self, now_s: float) -> bool:
        """Whether another process wrote lately."""
        return now_s < self._shared_until_s

    def overtaken(self, now_s: float) -> None:
        """Another process wrote between our read and our write."""
        self._shared_until_s = now_s + limits.BUDGET_SHARED_S

    def wrote(self, now_s: float, *, attempts: int, round_s: float) -> None:
        """A write of ours took so many attempts, the last of which took so long, reading included."""
        self._times *= _LONGER if attempts > 1 else _SHORTER
        self._times = min(max(self._times, 1.0), _TIMES_MAX)
        pause_s = self._chance.uniform(0.5, 1.5) * self._times * round_s
        self._next_s = now_s + min(limits.BUDGET_SHARED_PAUSE_MAX_S, pause_s)

    def pause_s(self, now_s: float) -> float:
        """How long to wait still, after our last write, before the next."""
        return max(0.0, self._next_s - now_s) if self.is_shared(now_s) else 0.0
