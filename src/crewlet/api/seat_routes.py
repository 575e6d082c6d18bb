"""What a person may do to a seat: pause it, with or without ending what it works on, and let it go on."""

from __future__ import annotations

from fastapi import APIRouter

from crewlet.api.depends import NEEDS_TOKEN, Face, Principal
from crewlet.api.models import NewPause
from crewlet.api.unknown_seats import no_such_seat, not_an_agent
from crewlet.node.face import NoSuchSeat, NotAnAgent
from crewlet.node.pause_views import PausedSeat, ResumedSeat

__all__ = ["router"]

router = APIRouter(tags=["seats"], dependencies=[NEEDS_TOKEN])


@router.post("/seats/{handle}/pause")
async def pause(handle: str, face: Face, principal: Principal, asked: NewPause | None = None) -> PausedSeat:
    """Have the seat start nothing more, whichever node holds it, until it is resumed; its mail waits.

    With `stop_running`, the turn that runs is ended before its next model or tool call, and its trigger counts as
    worked. A pause outlives restarts and moves and never expires. A pause that stands stays its first asker's;
    `changed` is false then, but where it comes to stop what runs. Refused with `no_such_seat`, `not_an_agent`.
    """
    wanted = asked or NewPause()
    try:
        return await face.pauses.pause(handle, by=principal, reason=wanted.reason, stop_running=wanted.stop_running)
    except NoSuchSeat as error:
        raise no_such_seat(error) from None
    except NotAnAgent:
        raise not_an_agent(handle) from None


@router.post("/seats/{handle}/resume")
async def resume(handle: str, face: Face, principal: Principal) -> ResumedSeat:
    """Let a paused seat go on; `ended` is the pause that this ended, null where none stood."""
    try:
        return await face.pauses.resume(handle, by=principal)
    except NoSuchSeat as error:
        raise no_such_seat(error) from None
    except NotAnAgent:
        raise not_an_agent(handle) from None
