"""What a person may do to a running turn: tell it something."""

from __future__ import annotations

from fastapi import APIRouter

from crewlet.api.depends import NEEDS_TOKEN, Face, Principal
from crewlet.api.models import NewNote
from crewlet.api.refusals import Refused
from crewlet.base import limits
from crewlet.node.steering import Steered, SteerOutcome

__all__ = ["router"]

router = APIRouter(tags=["turns"], dependencies=[NEEDS_TOKEN])


@router.post("/turns/{turn_id}/steer", status_code=202)
async def steer(turn_id: str, note: NewNote, face: Face, principal: Principal) -> Steered:
    """Tell a running turn something, whichever node runs it: its model reads the note at its next round.

    `agent_turn_steered` says which round read it, or that the turn ended before one did. Sent again with the same
    `note_id` it is read once. Refused with `no_such_turn`, `turn_ended`, `too_many_notes`, or `unavailable` with
    `"outcome": "unknown"`, where a node did not answer and the note may have been taken.
    """
    steered = await face.steering.steer(turn_id, note.note, by=principal, note_id=note.note_id)
    match steered.outcome:
        case SteerOutcome.NO_SUCH_TURN:
            raise Refused(404, "no_such_turn", f"no node runs a turn {turn_id!r}, and none ended lately")
        case SteerOutcome.CLOSED:
            raise Refused(409, "turn_ended", f"the turn {turn_id!r} has ended: write to its seat instead")
        case SteerOutcome.FULL:
            limit = limits.STEER_UNREAD_MAX
            raise Refused(429, "too_many_notes", f"{limit} notes wait for the turn's next round already")
        case SteerOutcome.ACCEPTED:
            return steered
