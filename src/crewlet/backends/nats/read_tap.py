"""Where a link's bytes go as they arrive: whole messages straight on, all else to the library's own read loop."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["ReadTap"]


class ReadTap:
    """Stands in front of the library's reader. Nothing overtakes anything.

    ``take`` hands on what it can and gives the rest back; ``keep`` is the library's way. Once bytes went that way, so
    do those behind them, until the library has worked them all and waits for more.
    """

    def __init__(self, take: Callable[[bytes], bytes], keep: Callable[[bytes], None]) -> None:
        self._take = take
        self._keep = keep
        self._is_waited_for = False

    def feed(self, data: bytes) -> None:
        """These bytes have arrived."""
        if self._is_waited_for:
            data = self._take(data)
            if not data:
                return
            self._is_waited_for = False
        self._keep(data)

    def wait(self) -> None:
        """The library has worked all that it has read, and reads: what is kept for it already, or what comes next."""
        self._is_waited_for = True

    def go_on(self) -> None:
        """It has read something, or waits no longer."""
        self._is_waited_for = False
