"""A person's pause of a seat as people and programs see it, and what they may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from crewlet.coordination import SeatPause

__all__ = ["PauseControl", "PauseView", "PausedSeat", "ResumedSeat", "pause_view"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseView:
    """Who paused a seat, since when, why, and whether what ran then was stopped too."""

    by: str
    by_seat: str
    at: datetime
    reason: str
    stop_running: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedSeat:
    """The pause that stands, which may be an earlier one; ``changed`` is false where it already stood so."""

    handle: str
    paused: PauseView
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedSeat:
    """The pause that was ended; ``None`` where none stood."""

    handle: str
    ended: PauseView | None


class PauseControl(Protocol):
    """Pausing seats, on every node of the fleet."""

    async def pause(self, handle: str, *, by: str, reason: str = "", stop_running: bool = False) -> PausedSeat:
        """The seat works nothing more until it is resumed. Raises ``NoSuchSeat``, ``NotAnAgent``, ``Unavailable``."""
        ...

    async def resume(self, handle: str, *, by: str) -> ResumedSeat:
        """The seat works again. Raises ``NoSuchSeat``, ``NotAnAgent``, ``Unavailable``."""
        ...


def pause_view(pause: SeatPause) -> PauseView:
    """The record as it is shown."""
    return PauseView(
        by=pause.by, by_seat=pause.by_seat, at=pause.at, reason=pause.reason, stop_running=pause.stop_running
    )
