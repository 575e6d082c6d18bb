"""Messages of an operator to a seat, and how they stand."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Header

from crewlet.api.depends import NEEDS_TOKEN, Face, Principal
from crewlet.api.models import MessageAccepted, NewMessage
from crewlet.api.refusals import Refused
from crewlet.base import limits
from crewlet.base.errors import PayloadTooLarge
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
        raise _no_such_seat(error) from None
    except NotAnAgent:
        raise Refused(409, "not_an_agent", f"the seat {handle!r} is a person's: it has no inbox here") from None
    except PayloadTooLarge as error:
        raise Refused(413, "body_too_large", str(error), detail={"limit_bytes": error.limit}) from None
    return MessageAccepted(id=sent.id, href=f"/messages/{quote(sent.id, safe='')}", trace_id=sent.trace_id)


@router.get("/messages/{message_id}")
async def message(message_id: str, face: Face) -> MessageView:
    """How a message stands: the turns and asks it led to, and the last answer, final once `state` is.

    `state` is `waiting`, `working`, `answered`, `failed` or `skipped`.
    """
    view = await face.message(message_id)
    if view is None:
        raise Refused(404, "no_such_message", f"this node took no message {message_id!r}")
    return view


def _no_such_seat(error: NoSuchSeat) -> Refused:
    near = _nearest(error.handle.lower(), error.known)
    shown = error.known[: limits.API_KNOWN_HANDLES_MAX]
    guess = f"; did you mean {near!r}?" if near else ""
    more = ", …" if len(shown) < len(error.known) else ""
    detail: dict[str, Any] = {"known": shown}
    if near:
        detail["did_you_mean"] = near
    sentence = f"{error}{guess} (known: {', '.join(shown)}{more})" if shown else f"{error}{guess}"
    return Refused(404, "no_such_seat", sentence, detail=detail)


def _nearest(handle: str, known: Sequence[str]) -> str:
    """The known handle that was probably meant: letters swapped before letters wrong; empty where none is near."""
    swapped = [each for each in known if sorted(each) == sorted(handle)]
    return next(iter(swapped or difflib.get_close_matches(handle, known, n=1)), "")
