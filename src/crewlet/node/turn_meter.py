"""A turn's meter: its replies counted against the budgets of the document that the turn began with (S0)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.coordination import Budgets, Spend, Windows
from crewlet.inbox import RecordedCharge
from crewlet.node.seat_budget import SeatBudget, full_windows, refused_windows, rooms_in, seat_budget
from crewlet.org import Organization
from crewlet.turns import BudgetExhausted, Meter, NoMeter, RefusedWindow, Spent

__all__ = ["OnRefused", "TurnMeter", "TurnMeters"]

_log = structlog.get_logger(__name__)

OnRefused = Callable[[tuple[RefusedWindow, ...]], None]
"""Told of every refusal of this node, as it happens."""


class TurnMeters:
    """Makes each turn's meter, and lets the counters forget a turn that is over."""

    def __init__(self, budgets: Budgets, clock: Clock, on_refused: OnRefused) -> None:
        self._budgets = budgets
        self._clock = clock
        self._on_refused = on_refused

    def meter(self, company: Organization, handle: str) -> Meter:
        """The meter of a turn that begins now: its ceilings and its clock are this document's to its end."""
        seat = company.agent_seat_by_handle(handle)
        if seat is None:
            return NoMeter()
        return TurnMeter(self._budgets, seat_budget(company, seat), self._clock, self._on_refused)

    async def recharge(self, company: Organization, handle: str, charge: RecordedCharge) -> None:
        """Count a recorded reply whose process may not have; what is counted is not counted again.

        A refusal is recorded on the counter and refuses nothing more: the reply is billed. Raises ``Unavailable``, also
        where the seat has left the company: nobody says by which windows its tokens count then.
        """
        meter = self.meter(company, handle)
        if isinstance(meter, NoMeter):
            raise Unavailable(f"{handle} is no agent seat of the company any more")
        spent = Spent(
            lane=charge.lane,
            number=charge.number,
            usage=charge.usage,
            provider_key=charge.provider_key,
            model=charge.model,
        )
        with suppress(BudgetExhausted):
            await meter.charge(spent, _nobody_fences)

    def ended(self, turn_id: str, agent_id: str) -> None:
        """The turn is over, here and everywhere."""
        self._budgets.forget_turn(turn_id, agent_id)


class TurnMeter:
    """One turn's. A call is stopped only by what the counter itself confirms; a charge judges in any case."""

    def __init__(self, budgets: Budgets, budget: SeatBudget, clock: Clock, on_refused: OnRefused) -> None:
        self._budgets = budgets
        self._budget = budget
        self._clock = clock
        self._on_refused = on_refused
        self._recorded: dict[tuple[str, str, str], RefusedWindow] = {}

    async def admit(self) -> None:
        """Before a model is asked. Raises ``BudgetExhausted`` where a window has no room for a single token."""
        if not self._budget.capped:
            return
        windows = self._budget.windows(self._clock.now())
        try:
            async with asyncio.timeout(limits.BUDGET_READ_WAIT_S):
                refused = await self._refusal(windows)
        except (Unavailable, TimeoutError) as unread:
            _log.info("budget_unread_before_call", agent_id=self._budget.agent_id, error=str(unread))
            return
        if refused:
            self._on_refused(refused)
            raise BudgetExhausted(refused)

    async def remaining(self) -> int | None:
        """Of the capped windows, what the one with the least room has left; ``None`` where none is or can be read."""
        windows = self._budget.windows(self._clock.now())
        rooms: list[int] = []
        try:
            async with asyncio.timeout(limits.BUDGET_READ_WAIT_S):
                for scope, ceilings in self._budget.capped:
                    record = self._budgets.last_known(scope, windows) or await self._budgets.spent(scope, windows)
                    rooms += rooms_in(record, ceilings)
        except (Unavailable, TimeoutError) as unread:
            _log.info("budget_unread_before_call", agent_id=self._budget.agent_id, error=str(unread))
            return None
        return max(min(rooms), 0) if rooms else None

    async def charge(self, spent: Spent, check: Callable[[], None]) -> None:
        """Count a reply. Raises ``BudgetExhausted``, ``Unavailable``, ``Fenced``."""
        budget = self._budget
        verdict = await self._budgets.charge(
            Spend(tokens=spent.usage.total, lane=spent.lane, number=spent.number, agent_id=budget.agent_id),
            windows=lambda: budget.windows(self._clock.now()),
            check=check,
            company=budget.company,
            seat=budget.seat,
        )
        if not verdict.admitted:
            refused = refused_windows(verdict.refusals, budget.windows(self._clock.now()))
            self._on_refused(refused)
            raise BudgetExhausted(refused)

    async def _refusal(self, windows: Windows) -> tuple[RefusedWindow, ...]:
        """What would refuse any charge now, recorded on the counter once a window and turn (C-176)."""
        full = await self._without_room(windows)
        known = [self._recorded[key] for each in full if (key := _key(each)) in self._recorded]
        if known or not full:
            return (*known,)
        budget = self._budget
        marked = await self._budgets.refuse(windows, agent_id=budget.agent_id, company=budget.company, seat=budget.seat)
        refused = refused_windows(marked, windows)
        self._recorded |= {_key(each): each for each in refused}
        return refused

    async def _without_room(self, windows: Windows) -> list[RefusedWindow]:
        """By what this process wrote last, which costs nothing; the counter is read where it knows nothing."""
        full: list[RefusedWindow] = []
        for scope, ceilings in self._budget.capped:
            record = self._budgets.last_known(scope, windows) or await self._budgets.spent(scope, windows)
            full += full_windows(record, ceilings, windows)
        return full


def _nobody_fences() -> None:
    """Two who make one charge count it once, so that it may be made whoever holds the seat."""


def _key(window: RefusedWindow) -> tuple[str, str, str]:
    return window.scope, window.period, window.label
