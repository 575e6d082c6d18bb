"""A node's own clock: wrong by a fixed time and a little too fast or too slow, as far as the engine bears it."""

from __future__ import annotations

from datetime import datetime, timedelta

from crewlet.base.clock import Clock

__all__ = ["NodeClock"]


class NodeClock:
    """``skew_s`` is how far its wall clock is off; ``rate`` how many of its seconds pass in one of the store's.

    Timers are the loop's and run true: only what is judged by this clock is judged wrongly.
    """

    def __init__(self, clock: Clock, *, skew_s: float, rate: float) -> None:
        self._clock = clock
        self._skew = timedelta(seconds=skew_s)
        self._rate = rate
        self.stood_still_s = 0.0
        """For how long its process has stood still so far, in the store's seconds."""

    def now(self) -> datetime:
        """What this node takes for the time."""
        return self._clock.now() + self._skew

    def elapsed_s(self) -> float:
        """Seconds as this node counts them, those that it stood still among them."""
        return self._clock.elapsed_s() * self._rate

    def awake_s(self) -> float:
        """Seconds as a clock counts them that stops with its process: what no lease may be judged by."""
        return (self._clock.elapsed_s() - self.stood_still_s) * self._rate
