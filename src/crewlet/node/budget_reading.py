"""The token counters read for a whole company at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.coordination import COMPANY_SCOPE, UNCAPPED, BudgetRecord, Budgets, Windows, windows_at
from crewlet.node.budget_views import BudgetsView, budgets_view
from crewlet.node.seat_budget import ceilings_of, zone_of
from crewlet.org import Organization

__all__ = ["BudgetReading"]

_log = structlog.get_logger(__name__)


class BudgetReading:
    """What every budget of the company in force says; read anew each time."""

    def __init__(self, budgets: Budgets, company: Callable[[], Organization], clock: Clock) -> None:
        self._budgets = budgets
        self._company = company
        self._clock = clock

    async def all(self) -> BudgetsView:
        """Every scope and window; where the counters cannot be read, what is known without them."""
        company, now = self._company(), self._clock.now()
        try:
            records = await self._records(windows_at(now, zone_of(company)), seats=True)
        except Unavailable as unread:
            _log.warning("budgets_unread", error=str(unread))
            records = None
        return budgets_view(company, records, now)

    async def capped(self) -> BudgetsView | None:
        """As :meth:`all`, of which the windows with a ceiling hold; ``None`` where none has one.

        The seats' counters are read only where a seat has a ceiling. Raises ``Unavailable``.
        """
        company, now = self._company(), self._clock.now()
        seats = any(ceilings_of(seat.token_budget) != UNCAPPED for seat in company.agent_seats)
        if not seats and ceilings_of(company.token_budget) == UNCAPPED:
            return None
        return budgets_view(company, await self._records(windows_at(now, zone_of(company)), seats=seats), now)

    async def _records(self, windows: Windows, *, seats: bool) -> Mapping[str, BudgetRecord]:
        try:
            async with asyncio.timeout(limits.BUDGETS_READ_WAIT_S):
                if seats:
                    return await self._budgets.spent_by_all(windows)
                return {COMPANY_SCOPE: await self._budgets.spent(COMPANY_SCOPE, windows)}
        except TimeoutError:
            raise Unavailable(f"the token counters were not read within {limits.BUDGETS_READ_WAIT_S:g} s") from None
