"""A person's stop of a turn that runs, asked where the fence is asked and only after it."""

from __future__ import annotations

from typing import Protocol

from crewlet.base.fence import Fence

__all__ = ["Stop", "StoppableFence"]


class Stop(Protocol):
    """Whether a person stopped what is running."""

    def check(self) -> None:
        """Return while nobody did; raise ``StoppedByPerson`` from then on (S-080)."""
        ...


class StoppableFence:
    """The fence of a grant with the stop of a person behind it: whoever checks the one has checked the other."""

    def __init__(self, fence: Fence, stop: Stop) -> None:
        self._fence = fence
        self._stop = stop

    @property
    def epoch(self) -> int:
        """The epoch of the grant."""
        return self._fence.epoch

    def check(self) -> None:
        """Raise ``Fenced`` where the seat moved, else ``StoppedByPerson`` where somebody stopped the turn."""
        # Ownership first: a turn of a seat that moved is its new holder's to stop or not.
        self._fence.check()
        self._stop.check()
