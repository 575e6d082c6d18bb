"""Where a link's bytes go as they arrive: whole messages straight on, all else to the library's own read loop."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["ReadTap"]


class ReadTap:
    """Stands in front of the library's reader. Nothing overtakes anything.

    ``take`` hands on what it can and gives the rest back; ``keep`` is the library's way. Once bytes went that way, so
    do those behind them, until the library has read them all and waits for more.
    """

    def __init__(self, take: Callable[[bytes], bytes], keep: Callable[[bytes], None]) -> None:
        self._take = take
        self._keep = keep
        self._unread_bytes = 0
        self._is_waited_for = False

    def feed(self, data: bytes) -> None:
        """These bytes have arrived."""
        if self._is_waited_for and not self._unread_bytes:
            data = self._take(data)
            if not data:
                return
        self._unread_bytes += len(data)
        self._keep(data)

    def wait(self) -> None:
        """The library has worked what it read, and waits for more."""
        self._is_waited_for = True

    def go_on(self) -> None:
        """It waits no longer."""
        self._is_waited_for = False

    def was_read(self, size: int) -> None:
        """The library has read so many bytes."""
        self._unread_bytes -= size
