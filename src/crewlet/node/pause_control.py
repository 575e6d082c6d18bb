"""Pausing and resuming seats on a person's word: the shared record first, then the news of what it changed (S0)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime

import structlog

from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.base.ids import Ids
from crewlet.coordination import PauseChange, SeatPause, SeatPauses
from crewlet.events import Event
from crewlet.events.types import SeatPaused, SeatResumed
from crewlet.node.face import NoSuchSeat, NotAnAgent
from crewlet.node.news import News
from crewlet.node.pause_views import PausedSeat, ResumedSeat, pause_view
from crewlet.org import Organization

__all__ = ["SeatPauseControl"]

_log = structlog.get_logger(__name__)


class SeatPauseControl:
    """What whoever asks is told is what the record says; every node that holds the seat follows the record.

    The news is published by whoever's write made the change, so that each change is told once (E-117).
    """

    def __init__(
        self,
        pauses: SeatPauses,
        organization: Callable[[], Organization],
        publish: Callable[[str, Event], Awaitable[Event]],
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._pauses = pauses
        self._organization = organization
        self._news = News(publish, clock, ids)
        self._clock = clock

    async def pause(self, handle: str, *, by: str, reason: str = "", stop_running: bool = False) -> PausedSeat:
        """The seat works nothing more until it is resumed; ``stop_running`` ends what it works on now, too.

        A pause that stands stays its first asker's, and can only come to stop what runs. Raises ``NoSuchSeat``,
        ``NotAnAgent``, ``Unavailable``.
        """
        self._agent(handle)
        asked = SeatPause(handle=handle, by=by, at=self._clock.now(), reason=reason, stop_running=stop_running)
        came_to = await self._pauses.pause(asked)
        pause, changed = came_to.pause, came_to.change is not PauseChange.NONE
        if changed:
            _log.info("seat_paused", seat=handle, by=by, reason=reason, stop_running=pause.stop_running)
            told = SeatPaused(
                agent_handle=handle, paused_by=by, paused_at=pause.at, reason=reason, stop_running=pause.stop_running
            )
            await self._news.tell(told, source=by)
        return PausedSeat(handle=handle, paused=pause_view(pause), changed=changed)

    async def resume(self, handle: str, *, by: str) -> ResumedSeat:
        """The seat works again. Raises ``NoSuchSeat``, ``NotAnAgent``, ``Unavailable``."""
        self._agent(handle)
        ended = await self._pauses.lift(handle)
        if ended is None:
            return ResumedSeat(handle=handle, ended=None)
        _log.info("seat_resumed", seat=handle, by=by, paused_by=ended.by)
        await self._news.tell(_resumed(ended, by), source=by)
        return ResumedSeat(handle=handle, ended=pause_view(ended))

    async def forget(self, handles: Iterable[str], *, before: datetime) -> None:
        """Lift what was set ``before`` on seats that left the company: one of the same name is another seat.

        What cannot be lifted now is said, and shows once such a seat comes.
        """
        for handle in handles:
            try:
                ended = await self._pauses.lift(handle, set_before=before)
            except Unavailable as error:
                _log.warning("seat_pause_of_removed_kept", seat=handle, error=str(error))
                continue
            if ended is not None:
                _log.info("seat_resumed", seat=handle, by="", paused_by=ended.by)
                await self._news.tell(_resumed(ended, ""), source="engine")

    def _agent(self, handle: str) -> None:
        organization = self._organization()
        seat = organization.seat(handle)
        if seat is None:
            raise NoSuchSeat(handle, [each.handle for each in organization.agent_seats])
        if not seat.is_agent:
            raise NotAnAgent(f"{handle} is a person: nobody pauses them here")


def _resumed(ended: SeatPause, by: str) -> SeatResumed:
    return SeatResumed(agent_handle=ended.handle, paused_by=ended.by, paused_at=ended.at, resumed_by=by)
