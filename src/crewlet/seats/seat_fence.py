"""The right to go on acting for a seat, as whoever was admitted carries it along."""

from __future__ import annotations

from collections.abc import Callable

from crewlet.base.errors import Fenced

__all__ = ["SeatFence"]


class SeatFence:
    """Stands while this process holds the seat under the epoch that the work was admitted with (S-074).

    ``grant_of`` gives the epoch that work of a seat may go on under, ``None`` where it may not.
    """

    def __init__(self, grant_of: Callable[[str], int | None], handle: str, epoch: int) -> None:
        self._grant_of = grant_of
        self._handle = handle
        self._epoch = epoch

    @property
    def epoch(self) -> int:
        """The epoch of the grant."""
        return self._epoch

    def check(self) -> None:
        """Raise ``Fenced`` once the seat is gone from here or was re-claimed under another epoch."""
        held = self._grant_of(self._handle)
        if held != self._epoch:
            message = f"seat {self._handle!r}: epoch {self._epoch} is over (now {held or 'not held here'})"
            raise Fenced(message)
