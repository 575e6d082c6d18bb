"""How the process stands, and who works in it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from crewlet.api.depends import NEEDS_TOKEN, Face
from crewlet.api.models import NotReady, Ready, Seats
from crewlet.api.refusals import Refusal
from crewlet.node.face import Health

__all__ = ["open_router", "router"]

open_router = APIRouter(tags=["node"])
router = APIRouter(tags=["node"], dependencies=[NEEDS_TOKEN])


@open_router.get("/health", response_model_exclude_none=True)
async def health(face: Face) -> Health:
    """How the process stands; 200 as long as it lives. Needs no token."""
    return face.health()


@open_router.get("/ready", response_model=Ready, responses={503: {"model": NotReady}})
async def ready(face: Face) -> Response | Ready:
    """Whether to send the node work: 200, or 503 with the reasons. Needs no token."""
    reasons = face.ready().reasons
    if not reasons:
        return Ready()
    refusal = Refusal(503, reasons[0], f"not ready: {', '.join(reasons)}", {"reasons": reasons})
    return Response(refusal.body(), refusal.status, {"Retry-After": "5"}, "application/json")


@router.get("/seats")
async def seats(face: Face) -> Seats:
    """Every seat of the company: who holds it, what it does, what went wrong last."""
    return Seats(seats=list(face.seats()))
