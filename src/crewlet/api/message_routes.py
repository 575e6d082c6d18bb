"""Messages of an operator to a seat, and how they stand."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Header

from crewlet.api.depends import NEEDS_TOKEN, Face, Principal
from crewlet.api.models import MessageAccepted, NewMessage
from crewlet.api.refusals import Refused
from crewlet.api.unknown_seats import no_such_seat, not_an_agent
from crewlet.base.errors import PayloadTooLarge
from crewlet.node.coverage import PeersSilent
from crewlet.node.face import MessageView, NoSuchSeat, NotAnAgent
from crewlet.tracing import parse_traceparent

__all__ = ["router"]

router = APIRouter(tags=["messages"], dependencies=[NEEDS_TOKEN])


@router.post("/seats/{handle}/messages", status_code=202)
async def send_message(
    handle: str,
    message: NewMessage,
    face: Face,
    principal: Principal,
    traceparent: Annotated[str, Header(description="W3C trace context: the caller's span.")] = "",
) -> MessageAccepted:
    """Write to an agent's seat. 202 once the broker has the message: it is worked even if this node dies now.

    A `traceparent` header makes everything that the message causes part of the caller's trace; a malformed one is as
    if it were not there.

    Refused with `no_such_seat`, `not_an_agent`, `bad_request`, `body_too_large`, `draining`, or `unavailable` with
    `"outcome": "unknown"`, where the message may or may not be on its way.
    """
    try:
        parent = parse_traceparent(traceparent)
        sent = await face.send_message(handle, message.text, principal=principal, parent=parent)
    except NoSuchSeat as error:
        raise no_such_seat(error) from None
    except NotAnAgent:
        raise not_an_agent(handle) from None
    except PayloadTooLarge as error:
        raise Refused(413, "body_too_large", str(error), detail={"limit_bytes": error.limit}) from None
    return MessageAccepted(id=sent.id, href=f"/messages/{quote(sent.id, safe='')}", trace_id=sent.trace_id)


@router.get("/messages/{message_id}")
async def message(message_id: str, face: Face) -> MessageView:
    """How a message stands: the turns and asks it led to, and the last answer, final once `state` is.

    `state` is `waiting`, `working`, `answered`, `failed` or `skipped`. Any node of the fleet can be asked: `coverage`
    says whose logs the answer comes from. Refused with `unavailable` where no node that answered knows the message, and
    a live one did not answer.
    """
    try:
        view = await face.message(message_id)
    except PeersSilent as error:
        told = f"no node that answered knows the message {message_id!r}, and {error.missing} did not answer; ask again"
        raise Refused(503, "unavailable", told, headers={"Retry-After": "5"}) from None
    if view is None:
        raise Refused(
            404,
            "no_such_message",
            f"no live node took a message {message_id!r}; one that a node took which is gone now is known again once"
            " that node is back",
        )
    return view
