"""The timer that keeps the ack clocks of what an attachment works from running out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final, Generic, TypeVar

__all__ = ["AckClock"]

_EXTENSIONS_PER_ACK_WAIT: Final = 3

_H = TypeVar("_H")


class AckClock(Generic[_H]):
    """While something is held, calls ``extend`` with it every third of ``ack_wait_s``.

    One timer outlasts many short units of work: it is not set and cancelled for each, and finds out when it fires.
    """

    def __init__(self, ack_wait_s: float, extend: Callable[[Collection[_H]], None]) -> None:
        self._every_s = ack_wait_s / _EXTENSIONS_PER_ACK_WAIT
        self._extend = extend
        self._held: Collection[_H] | None = None
        self._extended_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def start(self, held: Collection[_H]) -> None:
        """What ``held`` holds at each beat is worked from now on; its clocks have just begun."""
        loop = asyncio.get_running_loop()
        self._held = held
        self._extended_at = loop.time()
        if self._timer is None and not self._closed:
            self._timer = loop.call_later(self._every_s, self._due)

    def stop(self) -> None:
        """Nothing is worked."""
        self._held = None

    def close(self) -> None:
        """Extend nothing any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _due(self) -> None:
        self._timer = None
        if self._held is None:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        due_in_s = self._extended_at + self._every_s - now
        if due_in_s <= 0:
            self._extend(self._held)
            self._extended_at, due_in_s = now, self._every_s
        self._timer = loop.call_later(due_in_s, self._due)
