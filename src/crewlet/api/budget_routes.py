"""The token budgets: what each window may hold, what was spent in it, and how it stands."""

from __future__ import annotations

from fastapi import APIRouter

from crewlet.api.depends import NEEDS_TOKEN, Face
from crewlet.node.budget_views import BudgetsView

__all__ = ["router"]

router = APIRouter(prefix="/budgets", tags=["budgets"], dependencies=[NEEDS_TOKEN])


@router.get("")
async def budgets(face: Face) -> BudgetsView:
    """Every window of the company and of each agent seat, by the counters that the whole fleet shares.

    Where those cannot be read, `durable` is false and nothing is said of what was spent.
    """
    return await face.budgets()
