"""What the company has agreed on: the shared records, by slot."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from crewlet.api.depends import NEEDS_TOKEN, Face
from crewlet.api.models import RecordQuery, Slots
from crewlet.api.refusals import Refused
from crewlet.node.face import NoSuchSlot
from crewlet.node.record_views import RecordPage, RecordView

__all__ = ["router"]

router = APIRouter(prefix="/coordination", tags=["coordination"], dependencies=[NEEDS_TOKEN])


@router.get("")
async def slots(face: Face) -> Slots:
    """Every slot of the coordination store, with the age that is in force for its records."""
    return Slots(slots=list(face.records.slots()))


@router.get("/{slot}")
async def records(slot: str, face: Face, asked: Annotated[RecordQuery, Query()]) -> RecordPage:
    """A page of a slot's records, by key: those of one class of keys, or of every class that the slot is known to have.

    Either every record that was there throughout, or a 503; never a shorter list.
    """
    try:
        return await face.records.page(slot, asked.key_class, after=asked.after, limit=asked.limit)
    except NoSuchSlot as error:
        raise _no_such_slot(error) from None
    except ValueError as error:
        raise Refused(400, "bad_request", str(error)) from None


@router.get("/{slot}/{key:path}")
async def record(slot: str, key: str, face: Face) -> RecordView:
    """One record, by its key (`seat.ceo`) or by the name it was made from (`seat:ceo`)."""
    try:
        found = await face.records.get(slot, key)
    except NoSuchSlot as error:
        raise _no_such_slot(error) from None
    except ValueError as error:
        raise Refused(400, "bad_request", f"key: {error}") from None
    if found is None:
        raise Refused(404, "no_such_record", f"the slot {slot} holds no record {key!r}")
    return found


def _no_such_slot(error: NoSuchSlot) -> Refused:
    message = f"{error} (known: {', '.join(error.known)})"
    return Refused(404, "no_such_slot", message, detail={"known": list(error.known)})
