"""Who waits at the broker and has heard nothing of it for too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["SilenceWatch"]

Alarm = Callable[[], None]


class SilenceWatch:
    """Calls the alarm of each wait in which ``max_s`` have passed without a sound.

    One timer serves any number of waits. They stand in the order in which they were last heard, so that whoever has
    been silent for longest stands first and a sound costs no timer.
    """

    def __init__(self, max_s: float) -> None:
        self._max_s = max_s
        self._heard_at: dict[Alarm, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, alarm: Alarm) -> None:
        """A wait begins."""
        loop = asyncio.get_running_loop()
        self._heard_at[alarm] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._max_s, self._look)

    def heard(self, alarm: Alarm) -> None:
        """The broker has just shown that it knows of this wait."""
        if self._heard_at.pop(alarm, None) is not None:
            self._heard_at[alarm] = asyncio.get_running_loop().time()

    def end(self, alarm: Alarm) -> None:
        """This wait is over."""
        self._heard_at.pop(alarm, None)

    def close(self) -> None:
        """Watch nothing any more."""
        self._heard_at.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._timer = None
        while self._heard_at:
            alarm, heard_at = next(iter(self._heard_at.items()))
            if (left_s := heard_at + self._max_s - now) > 0:
                self._timer = loop.call_later(left_s, self._look)
                return
            del self._heard_at[alarm]
            alarm()
