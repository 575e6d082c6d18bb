"""The timer that keeps the ack clocks of what an attachment works from running out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["AckClock"]

_EXTENSIONS_PER_ACK_WAIT: Final = 3


class AckClock:
    """Calls ``extend`` every third of ``ack_wait_s`` until that says no or :meth:`stop`."""

    def __init__(self, ack_wait_s: float, extend: Callable[[], bool]) -> None:
        self._every_s = ack_wait_s / _EXTENSIONS_PER_ACK_WAIT
        self._extend = extend
        self._timer = self._set()

    def stop(self) -> None:
        """Extend nothing any more."""
        self._timer.cancel()

    def _set(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._every_s, self._due)

    def _due(self) -> None:
        if self._extend():
            self._timer = self._set()
