"""The store's own clock, known within bounds: what is judged by it never assumes that ours agrees (C-108, S-018)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from crewlet.base import limits
from crewlet.base.clock import Clock

__all__ = ["StoreClock", "StoreTime"]


@dataclass(frozen=True, slots=True)
class StoreTime:
    """What the store's clock reads: no earlier than ``earliest``, no later than ``latest`` (UTC)."""

    earliest: datetime
    latest: datetime

    def is_surely_past(self, deadline: datetime) -> bool:
        """Whether ``deadline`` has passed by every reading within the bounds."""
        return self.earliest >= deadline

    def is_maybe_past(self, deadline: datetime) -> bool:
        """Whether ``deadline`` has passed by some reading within the bounds."""
        return self.latest >= deadline


@dataclass(frozen=True, slots=True)
class _Sample:
    """The store's clock read ``server_time`` at some moment between two of ours (elapsed seconds)."""

    server_time: datetime
    sent_s: float
    heard_s: float

    def at(self, now_s: float) -> StoreTime:
        drift_s = (now_s - self.sent_s) * limits.STORE_CLOCK_DRIFT
        earliest = self.server_time + timedelta(seconds=now_s - self.heard_s - drift_s)
        latest = self.server_time + timedelta(seconds=now_s - self.sent_s + drift_s)
        return StoreTime(earliest, latest)


class StoreClock:
    """An estimate of the store's clock from the times that its answers carry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sample: _Sample | None = None

    def observe(self, server_time: datetime, *, sent_s: float) -> None:
        """An answer that just arrived says ``server_time``; its request left at ``sent_s`` (elapsed seconds).

        The narrower of two estimates that agree is kept. Where they do not, the store's clock is another one now (it
        was set, or another member leads): the newer one counts.
        """
        heard_s = self._clock.elapsed_s()
        new = _Sample(server_time, sent_s, heard_s)
        if self._sample is None:
            self._sample = new
            return
        before, after = self._sample.at(heard_s), new.at(heard_s)
        agree = before.earliest <= after.latest and after.earliest <= before.latest
        if not agree or after.latest - after.earliest <= before.latest - before.earliest:
            self._sample = new

    def now(self) -> StoreTime | None:
        """The bounds now, or ``None`` where nothing was heard for ``limits.STORE_CLOCK_ASKED_EVERY_S``."""
        sample, now_s = self._sample, self._clock.elapsed_s()
        if sample is None or now_s - sample.heard_s > limits.STORE_CLOCK_ASKED_EVERY_S:
            return None
        return sample.at(now_s)
