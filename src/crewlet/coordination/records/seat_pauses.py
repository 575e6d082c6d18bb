"""Seats that a person paused: who, why, and whether the running turn was stopped too. No pause expires (S0)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from msgspec.structs import replace

from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import change_stored, list_stored, read_stored, remove_stored

__all__ = ["SEAT_PAUSES_PATTERN", "PauseChange", "Paused", "SeatPause", "SeatPauses", "paused"]

SEAT_PAUSES_PATTERN: Final = "seat_pause.>"


class SeatPause(SharedRecord, frozen=True, kw_only=True):
    """One paused seat. ``by_seat`` is the seat of the person who paused it, where that person has one."""

    handle: str
    by: str
    at: datetime
    by_seat: str = ""
    reason: str = ""
    stop_running: bool = False


class PauseChange(Enum):
    """What asking for a pause came to. Only a change is announced."""

    PAUSED = "paused"
    STOPS_RUNNING_TOO = "stops_running_too"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Paused:
    """The pause that stands, and what this call changed."""

    pause: SeatPause
    change: PauseChange


def paused(standing: SeatPause | None, asked: SeatPause) -> Paused:
    """What stands once ``asked`` was asked for: a pause stays its first asker's, but can come to stop what runs."""
    if standing is None or replace(standing, unknown={}) == asked:
        return Paused(standing or asked, PauseChange.PAUSED)
    if asked.stop_running and not standing.stop_running:
        return Paused(replace(standing, stop_running=True), PauseChange.STOPS_RUNNING_TOO)
    return Paused(standing, PauseChange.NONE)


class SeatPauses:
    """The pauses, by seat: set and lifted over what was read alone.

    Nothing here fails open or closed by itself: every verb raises ``Unavailable``. A pause that cannot be read is not
    lifted: a node that was never told of the pauses defers what it is delivered (see ``PauseCopy``).
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    async def pause(self, asked: SeatPause) -> Paused:
        """The seat is paused; returns what stands and what this call changed. A repeat of one call changes it again."""
        came_to: list[Paused] = []

        def step(standing: SeatPause | None) -> SeatPause:
            came_to.append(paused(standing, asked))
            return came_to[-1].pause

        await change_stored(self._store, SeatPause, _key(asked.handle), step)
        return came_to[-1]

    async def lift(self, handle: str, *, set_before: datetime | None = None) -> SeatPause | None:
        """The seat is not paused; returns the pause that this ended, ``None`` where none stood.

        With ``set_before``, a pause that was set then or later is left as it is, and ``None`` returned.
        Of two calls at the same time both may be told that they ended it: neither error nor answer tells them apart.
        """

        def is_meant(standing: SeatPause) -> bool:
            return set_before is None or standing.at < set_before

        return await remove_stored(self._store, SeatPause, _key(handle), is_meant)

    async def get(self, handle: str) -> SeatPause | None:
        """The seat's pause, or ``None`` where it is not paused."""
        standing = await read_stored(self._store, SeatPause, _key(handle))
        return None if standing is None else standing.record

    async def every(self) -> list[SeatPause]:
        """Every pause of the company."""
        return [each.record for each in await list_stored(self._store, SeatPause, SEAT_PAUSES_PATTERN)]


def _key(handle: str) -> str:
    return f"seat_pause.{key_token(handle)}"
