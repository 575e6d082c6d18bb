"""What happened: pages of the event log, single events, whole turns."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from crewlet.api.depends import NEEDS_TOKEN, Face
from crewlet.api.event_rows import MalformedCursor, cursor_text, parse_cursor, record, stored_row
from crewlet.api.models import EventPage, EventQuery, EventRecord, TurnRecord
from crewlet.api.refusals import Refused
from crewlet.node.message_view import turn_views
from crewlet.store import EventCursor, EventFilter

__all__ = ["router"]

router = APIRouter(tags=["events"], dependencies=[NEEDS_TOKEN])


@router.get("/events", response_model=EventPage)
async def events(face: Face, asked: Annotated[EventQuery, Query()]) -> Response:
    """A page of this node's event log, newest first, without payloads; go on with `before` set to `next`."""
    page = await face.events(_filter(asked))
    # A page of large events may be shorter than asked: only an empty one is the end.
    following = cursor_text(page[-1].cursor) if page else None
    return _json({"events": [stored_row(stored) for stored in page], "next": following})


@router.get("/events/{event_id}", response_model=EventRecord)
async def event(event_id: str, face: Face) -> Response:
    """One event with all that was published."""
    stored = await face.event(event_id)
    if stored is None:
        raise Refused(404, "no_such_event", f"this node's log has no event {event_id!r}")
    return _json(record(stored))


@router.get("/turns/{turn_id}", response_model=TurnRecord)
async def turn(turn_id: str, face: Face) -> Response:
    """One run of a turn: how it stands, and its events with payloads, oldest first."""
    rows = await face.turn(turn_id)
    if not rows:
        raise Refused(404, "no_such_turn", f"this node's log has no turn {turn_id!r}")
    views = [view for view in turn_views(stored.event for stored in rows) if view.turn_id == turn_id]
    return _json({"turn": views[0] if views else None, "events": [record(stored) for stored in rows]})


def _filter(asked: EventQuery) -> EventFilter:
    return EventFilter(
        types=tuple(asked.type),
        category=asked.category,
        seat=asked.seat,
        trace_id=asked.trace_id,
        turn_id=asked.turn_id,
        conversation=asked.conversation,
        since=asked.since,
        until=asked.until,
        before=_cursor(asked.before),
        failed=asked.failed,
        limit=asked.limit,
    )


def _cursor(text: str) -> EventCursor | None:
    try:
        return parse_cursor(text) if text else None
    except MalformedCursor as error:
        problem = {"path": "before", "problem": str(error)}
        raise Refused(400, "bad_request", f"before: {error}", detail={"problems": [problem]}) from None


def _json(answer: dict[str, Any]) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")
