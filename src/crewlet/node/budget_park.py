"""Keeps a seat's mail at the broker while a token budget has no room: judged before each delivery is worked (S0).

In process only. Whoever holds the seat next judges anew, by the same counters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks, together
from crewlet.coordination import Budgets, Ceilings, Windows
from crewlet.node.seat_budget import SeatBudget, full_windows, seat_budget
from crewlet.node.seat_holds import SeatHolds
from crewlet.node.turn_meter import OnRefused
from crewlet.org import Organization
from crewlet.queue import Defer
from crewlet.turns import RefusedWindow

__all__ = ["BUDGET_WINDOW", "BudgetPark"]

_log = structlog.get_logger(__name__)

BUDGET_WINDOW: Final = "budget_window"
"""The hold of a parked seat: some window has no room for a single token."""


@dataclass(frozen=True, slots=True)
class _Parked:
    """``until``: when it is judged again, which is when the last of its windows turns over."""

    windows: tuple[RefusedWindow, ...]
    until: datetime


class BudgetPark:
    """Which seats of this node are parked, and until when.

    ``company`` is the one in force. A counter that cannot be read parks nothing: the charge judges.
    """

    def __init__(
        self,
        budgets: Budgets,
        company: Callable[[], Organization],
        holds: SeatHolds,
        *,
        clock: Clock,
        on_refused: OnRefused,
    ) -> None:
        self._budgets = budgets
        self._company = company
        self._holds = holds
        self._clock = clock
        self._on_refused = on_refused
        self._parked: dict[str, _Parked] = {}
        self._stirred = asyncio.Event()
        self._tasks = Tasks("budget_park", on_failure=self._watch_again)

    def start(self) -> None:
        """Release what is parked when its time comes."""
        self._tasks.start("watch", self._watch())

    async def close(self) -> None:
        """Release nothing any more."""
        await self._tasks.close()

    async def refuses(self, handle: str) -> Defer | None:
        """Why a delivery of the seat is not to be worked now; its inbox is held then until the budget has room.

        Those counters are read for it that have a ceiling: half a millisecond where the broker is near.
        """
        while True:
            company = self._company()
            parked = await self._judged(company, handle)
            if parked is None:
                await self._release(handle)
                return None
            await self._park(company, handle, parked)
            if self._company() is company:
                return Defer(str(parked.windows[0]))
            # Another document has come into force meanwhile, and has judged whoever was parked then: it decides.

    async def ceilings_changed(self) -> None:
        """Another document is in force: each parked seat is judged by its ceilings and its clock."""
        for handle in [*self._parked]:
            await self._look_at(handle)

    async def _judged(self, company: Organization, handle: str) -> _Parked | None:
        seat = company.agent_seat_by_handle(handle)
        if seat is None:
            return None
        budget = seat_budget(company, seat)
        windows = budget.windows(self._clock.now())
        try:
            async with asyncio.timeout(limits.BUDGET_READ_WAIT_S):
                full = await self._full(budget, windows)
        except (Unavailable, TimeoutError) as unread:
            _log.info("budget_unread_before_delivery", seat=handle, error=str(unread))
            return None
        if not full:
            return None
        return _Parked(full, max(each.resets_at for each in full if each.resets_at is not None))

    async def _full(self, budget: SeatBudget, windows: Windows) -> tuple[RefusedWindow, ...]:
        found: dict[str, tuple[RefusedWindow, ...]] = {}

        async def read(scope: str, ceilings: Ceilings) -> None:
            found[scope] = full_windows(await self._budgets.slots_of(scope, windows), ceilings, windows)

        await together(*(read(scope, ceilings) for scope, ceilings in budget.capped))
        return tuple(window for scope, _ in budget.capped for window in found[scope])

    async def _park(self, company: Organization, handle: str, parked: _Parked) -> None:
        is_new = handle not in self._parked or BUDGET_WINDOW not in self._holds.of(handle)
        self._parked[handle] = parked
        self._stirred.set()
        try:
            await self._holds.hold(handle, BUDGET_WINDOW)
        except Unavailable as error:
            # The delivery is deferred all the same; the next one tries the hold again.
            _log.warning("seat_budget_park_not_held", seat=handle, error=str(error))
        if is_new:
            _log.info(
                "seat_budget_parked",
                seat=handle,
                windows=[f"{each.scope} {each.period} {each.label}" for each in parked.windows],
                until=parked.until.isoformat(),
            )
            self._on_refused(parked.windows)
            await self._record(company, handle)

    async def _record(self, company: Organization, handle: str) -> None:
        """The refusal on the counter, one for each park (C-175, C-176)."""
        seat = company.agent_seat_by_handle(handle)
        assert seat is not None, "it was judged a moment ago"
        budget = seat_budget(company, seat)
        try:
            async with asyncio.timeout(limits.BUDGET_READ_WAIT_S):
                await self._budgets.refuse(
                    budget.windows(self._clock.now()),
                    agent_id=budget.agent_id,
                    company=budget.company,
                    seat=budget.seat,
                )
        except (Unavailable, TimeoutError) as error:
            _log.warning("budget_refusal_unrecorded", seat=handle, error=str(error))

    async def _release(self, handle: str) -> None:
        parked = self._parked.pop(handle, None)
        if parked is None or BUDGET_WINDOW not in self._holds.of(handle):
            return
        try:
            await self._holds.release(handle, BUDGET_WINDOW)
        except Unavailable as error:
            _log.warning("seat_budget_park_not_released", seat=handle, error=str(error))
            again = self._clock.now() + timedelta(seconds=limits.BUDGET_PARK_RETRY_S)
            await self._still_held(handle, replace(parked, until=again))
            return
        _log.info("seat_budget_park_released", seat=handle)

    async def _still_held(self, handle: str, parked: _Parked) -> None:
        self._parked.setdefault(handle, parked)
        self._stirred.set()
        try:
            await self._holds.hold(handle, BUDGET_WINDOW)
        except Unavailable as error:
            _log.info("seat_budget_park_not_held", seat=handle, error=str(error))

    async def _look_at(self, handle: str) -> None:
        parked = await self._judged(self._company(), handle)
        if parked is None:
            await self._release(handle)
        elif handle in self._parked:
            self._parked[handle] = parked
            self._stirred.set()

    async def _watch(self) -> None:
        while True:
            self._stirred.clear()
            await self._wait()
            now = self._clock.now()
            for handle in [handle for handle, parked in self._parked.items() if parked.until <= now]:
                await self._look_at(handle)

    async def _wait(self) -> None:
        """Until the next one's time, or until there is news; never long, since the machine may sleep meanwhile."""
        longest_s = limits.BUDGET_PARK_LOOK_EVERY_S
        now = self._clock.now()
        due_s = min(((each.until - now).total_seconds() for each in self._parked.values()), default=longest_s)
        try:
            async with asyncio.timeout(min(max(due_s, 0.0), longest_s)):
                await self._stirred.wait()
        except TimeoutError:
            return

    def _watch_again(self, task: str, failure: BaseException) -> None:
        """A defect of ours ended the watch: begin again, or nobody would release what is parked."""
        _log.error("budget_park_watch_lost", task=task, error=repr(failure))
        self._tasks.start("again", self._begin_again())

    async def _begin_again(self) -> None:
        await asyncio.sleep(limits.BUDGET_PARK_LOOK_EVERY_S)
        self.start()
