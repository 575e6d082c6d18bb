"""How long something is waited for, and when that is worth another line in the log."""

from __future__ import annotations

import asyncio

from crewlet.base import limits

__all__ = ["Patience"]


class Patience:
    """Begins when it is made; needs a running loop."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._began = self._now()
        self._next_line = self._began
        self.has_spoken = False
        """Whether there was anything to say of it."""

    @property
    def waited_s(self) -> float:
        """How long it has been."""
        return self._now() - self._began

    def begin_again(self) -> None:
        """Something moved: the whole time is left once more."""
        self._began = self._now()

    def is_over(self) -> bool:
        """Whether the time has passed."""
        return self.waited_s >= self._timeout_s

    def speaks(self) -> bool:
        """Whether it is time for a line: at first, and every so often."""
        if self._now() < self._next_line:
            return False
        self._next_line = self._now() + limits.CLUSTER_WAIT_SAID_EVERY_S
        self.has_spoken = True
        return True

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
