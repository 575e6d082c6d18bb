"""The operator's hands on the queue: what waits where, and what was given up."""

from __future__ import annotations

import json
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Query

from crewlet import topics
from crewlet.api.depends import NEEDS_TOKEN, Face, Principal
from crewlet.api.models import (
    DeadLetterContent,
    DeadLetterDropped,
    DeadLetterList,
    DeadLetterQuery,
    DeadLetterRedriven,
    DeadLetterRow,
    Mailboxes,
)
from crewlet.api.refusals import Refused
from crewlet.base.errors import PayloadTooLarge
from crewlet.queue import DeadLetter, RedriveOutcome

__all__ = ["router"]

router = APIRouter(tags=["queue"], dependencies=[NEEDS_TOKEN])

_log = structlog.get_logger(__name__)


@router.get("/mailboxes")
async def mailboxes(face: Face, seat: str = "") -> Mailboxes:
    """Every durable mailbox: what waits in it, what somebody holds, since when, and who is attached.

    `attached` is `here` (this node), `elsewhere` (another node asks for its mail), `unknown` (nobody asks, and
    somebody holds a delivery) or `nobody`.
    """
    try:
        return Mailboxes(mailboxes=list(await face.mailboxes(seat)))
    except ValueError as error:
        raise Refused(400, "bad_request", f"seat: {error}") from None


@router.get("/dead-letters")
async def dead_letters(face: Face, asked: Annotated[DeadLetterQuery, Query()]) -> DeadLetterList:
    """A page of what was given up, newest first; go on with `before` set to `next`, also after an empty page."""
    if asked.seat and asked.topic:
        raise Refused(400, "bad_request", "give `seat` or `topic`, not both")
    try:
        pattern = topics.agent_topics(asked.seat) if asked.seat else asked.topic
        page = await face.dead_letters.page(limit=asked.limit, before=asked.before, pattern=pattern)
    except ValueError as error:
        raise Refused(400, "bad_request", str(error)) from None
    return DeadLetterList(letters=[DeadLetterRow(**_row(letter)) for letter in page.letters], next=page.next)


@router.get("/dead-letters/{letter_id}")
async def dead_letter(letter_id: str, face: Face) -> DeadLetterContent:
    """One letter with its message, as JSON where it is JSON and as text where it is not."""
    letter = await face.dead_letters.get(letter_id)
    if letter is None:
        raise _no_such(letter_id)
    return DeadLetterContent(**_row(letter), payload=_payload(letter.payload))


@router.post("/dead-letters/{letter_id}/redrive")
async def redrive(letter_id: str, face: Face, principal: Principal) -> DeadLetterRedriven:
    """Put the message on its topic again, under the event's own id and with a whole delivery budget.

    A message that the completion ledger knows as worked is skipped when it arrives. Refused with `mailbox_gone` where
    nobody can receive it any more: the letter stays. After `"outcome": "unknown"` it may be sent again: a repeat
    within two minutes is stored once, later it is at most a second message with the same event id.
    """
    try:
        redriven = await face.dead_letters.redrive(letter_id)
    except PayloadTooLarge as error:
        raise Refused(413, "body_too_large", str(error), detail={"limit_bytes": error.limit}) from None
    letter = redriven.letter
    if letter is None:
        raise _no_such(letter_id)
    if redriven.outcome is RedriveOutcome.MAILBOX_GONE:
        where = f"{letter.topic} ({letter.group})" if letter.topic else "that it does not name"
        raise Refused(409, "mailbox_gone", f"the mailbox {where} is gone: letter {letter_id} was not sent and is kept")
    _log.info("dead_letter_redriven_by_operator", letter=letter_id, topic=letter.topic, principal=principal)
    return DeadLetterRedriven(id=letter_id, topic=letter.topic, event_id=letter.event.id if letter.event else "")


@router.delete("/dead-letters/{letter_id}")
async def drop(letter_id: str, face: Face, principal: Principal) -> DeadLetterDropped:
    """Remove a letter for good."""
    if not await face.dead_letters.drop(letter_id):
        raise _no_such(letter_id)
    _log.info("dead_letter_dropped_by_operator", letter=letter_id, principal=principal)
    return DeadLetterDropped(id=letter_id)


def _row(letter: DeadLetter) -> dict[str, Any]:
    event = letter.event
    return {
        "id": letter.id,
        "at": letter.at,
        "topic": letter.topic,
        "group": letter.group,
        "seat": topics.seat_handle(letter.topic) or "",
        "reason": letter.reason,
        "deliveries": letter.deliveries,
        "stream": letter.stream,
        "stream_seq": letter.stream_seq,
        "size_bytes": letter.size_bytes,
        "event_id": event.id if event else "",
        "event_type": event.type if event else "",
        "trace_id": event.trace_id if event else "",
        "summary": event.summary if event else "",
    }


def _payload(raw: bytes) -> Any:  # noqa: ANN401 - whatever JSON may be
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw.decode("utf-8", "replace")


def _no_such(letter_id: str) -> Refused:
    return Refused(404, "no_such_dead_letter", f"there is no dead letter {letter_id!r}")
