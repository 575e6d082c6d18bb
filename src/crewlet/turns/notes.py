"""What people tell a turn while it runs (steering)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["NoNotes", "Note", "Notes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One note to a running turn; ``note_id`` is the id of the request that brought it."""

    note_id: str
    text: str
    by: str
    by_seat: str = ""
    sent_at: str = ""


class Notes(Protocol):
    """The notes that wait for one turn."""

    def take(self, phase: str, iteration: int, round_num: int) -> Sequence[Note]:
        """Those that came since the last call, which this round reads; they count as delivered by it."""
        ...


class NoNotes:
    """Nobody steers."""

    def take(self, phase: str, iteration: int, round_num: int) -> Sequence[Note]:
        """None."""
        return ()
