"""The fleet: its nodes, who runs which seat, duties, and what nobody can run."""

from __future__ import annotations

from fastapi import APIRouter

from crewlet.api.depends import NEEDS_TOKEN, Face
from crewlet.node.fleet_views import FleetView

__all__ = ["router"]

router = APIRouter(prefix="/query", tags=["fleet"], dependencies=[NEEDS_TOKEN])


@router.get("/fleet")
async def fleet(face: Face) -> FleetView:
    """What the leases say, whichever node is asked. A field that a node does not state is null, never zero."""
    return await face.fleet()
