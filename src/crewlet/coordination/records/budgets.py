"""Token budgets: what the company and its agents spend, counted once for the whole fleet (S0)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import ClassVar

import structlog

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.records.budget_charge import Charge, Refusal, Spend, Verdict
from crewlet.coordination.records.budget_line import BudgetLine, turn_of
from crewlet.coordination.records.budget_record import (
    AGENT_KEYS,
    COMPANY_SCOPE,
    UNCAPPED,
    BudgetRecord,
    Ceilings,
    agent_scope,
    as_found,
    laneless,
    scope_key,
)
from crewlet.coordination.records.budget_upkeep import LaneRemoval, RefusalMark
from crewlet.coordination.records.budget_windows import Windows
from crewlet.coordination.records.codec import decode_record
from crewlet.coordination.records.stored import list_stored, read_stored

__all__ = ["Budgets"]

_log = structlog.get_logger(__name__)


class Budgets:
    """Every token that is spent, counted by calendar window in the company's record and in the seat's.

    Fails closed (C-010): a charge that cannot be counted raises, which is an outage and never a refusal (C-011). It
    stays in line until it is known to stand, so that what an outage hid is counted after it.

    The calendar is the caller's: nothing here reads a clock. One process has one instance; close it.
    """

    line_kind: ClassVar[type[BudgetLine]] = BudgetLine

    def __init__(self, store: RecordStore, chance: Random) -> None:
        self._store = store
        self._chance = chance
        self._tasks = Tasks("budgets")
        self._lines: dict[str, BudgetLine] = {}
        self._is_closed = False

    async def charge(
        self,
        spend: Spend,
        *,
        windows: Callable[[], Windows],
        check: Callable[[], None] = lambda: None,
        company: Ceilings = UNCAPPED,
        seat: Ceilings = UNCAPPED,
    ) -> Verdict:
        """Count a reply that has arrived, in the company's record and then in the seat's, whatever either says to it.

        Each record judges it in the windows of its write. The same spend again, here or in the process that goes on
        with the turn, is counted where it is not yet and answered as it was judged; ``check`` is the caller's fence,
        asked before each attempt but the first.

        Raises ``Unavailable`` (``SeatShareMissing`` where the company's record has it): the round stops as an outage.
        Raises ``Fenced`` where ``check`` did: whoever holds the seat now completes the charge.
        """
        ceilings = dict(zip(spend.scopes, (company, seat), strict=False))
        return await self._counted(spend, ceilings, windows, check)

    async def post_charge(
        self,
        spend: Spend,
        *,
        windows: Callable[[], Windows],
        check: Callable[[], None] = lambda: None,
        seat_alone: bool = False,
    ) -> None:
        """Count what was spent elsewhere and judge nothing. ``seat_alone``: the company's record has it already.

        Raises as :meth:`charge`.
        """
        scopes = spend.scopes[1:] if seat_alone else spend.scopes
        if not scopes:
            raise ValueError(f"no seat has a share of {spend}")
        await self._counted(spend, dict.fromkeys(scopes), windows, check)

    async def refuse(
        self, windows: Windows, *, agent_id: str = "", company: Ceilings = UNCAPPED, seat: Ceilings = UNCAPPED
    ) -> Sequence[Refusal]:
        """Record that a call was turned away before it was made; returns the windows that stand marked for it.

        They are those of the scope that would refuse a charge, the company before the seat; none where both have room
        by their counters as they stand. Nothing is counted. Raises ``Unavailable``.
        """
        scopes = (COMPANY_SCOPE, agent_scope(agent_id)) if agent_id else (COMPANY_SCOPE,)
        for scope, ceilings in zip(scopes, (company, seat), strict=False):
            mark = RefusalMark(windows, ceilings)
            marked = mark.refusals(await mark.made_in(self._line(scope)))
            if marked:
                return marked
        return ()

    async def spent(self, scope: str, windows: Windows) -> BudgetRecord:
        """The counter of ``org`` or ``agent:{id}`` as the next charge in these windows will find it.

        A slot that is ahead of them answers with its own window. Raises ``Unavailable``.
        """
        found = await read_stored(self._store, BudgetRecord, scope_key(scope))
        return as_found(BudgetRecord(scope=scope) if found is None else found.record, windows)

    async def slots_of(self, scope: str, windows: Windows) -> BudgetRecord:
        """As :meth:`spent`, without the lanes, of which nobody asks who only wants to know what was spent."""
        found = await self._store.get(scope_key(scope))
        if found is None:
            return as_found(BudgetRecord(scope=scope), windows)
        return as_found(decode_record(BudgetRecord, laneless(found.value)), windows)

    def last_known(self, scope: str, windows: Windows) -> BudgetRecord | None:
        """As :meth:`spent`, by what this process wrote or read last, or ``None``; asks nobody.

        Others may have spent since. What it shows without room stays so until the window turns over.
        """
        line = self._lines.get(scope)
        known = None if line is None else line.known
        return None if known is None else as_found(known, windows)

    async def spent_by_all(self, windows: Windows) -> Mapping[str, BudgetRecord]:
        """As :meth:`spent`, for every scope that has a counter, in one pass. Raises ``Unavailable``."""
        company, agents = await asyncio.gather(
            read_stored(self._store, BudgetRecord, scope_key(COMPANY_SCOPE)),
            list_stored(self._store, BudgetRecord, AGENT_KEYS),
        )
        found = agents if company is None else [company, *agents]
        return {each.record.scope: as_found(each.record, windows) for each in found}

    def forget_turn(self, turn_id: str, agent_id: str) -> None:
        """A turn ended in this process: its lanes go ten minutes later, with a write that is made anyway."""
        if not self._is_closed:
            for scope in (COMPANY_SCOPE, agent_scope(agent_id)):
                self._line(scope).forget_turn(turn_id)

    async def remove_lanes(self, is_over: Callable[[str], bool]) -> None:
        """No record has a lane that is over: those of incarnations long gone. Raises ``Unavailable``."""
        company = await read_stored(self._store, BudgetRecord, scope_key(COMPANY_SCOPE))
        agents = await list_stored(self._store, BudgetRecord, AGENT_KEYS)
        for each in agents if company is None else [company, *agents]:
            if any(is_over(lane) for lane in each.record.lanes):
                await LaneRemoval(is_over).made_in(self._line(each.record.scope))

    async def close(self) -> None:
        """Finish what is under way, within ``limits.BUDGET_CLOSE_WAIT_S``; what is not counted then is logged.

        The lanes of turns that ended here go too: nobody else would take them before they are old.
        """
        if self._is_closed:
            return
        try:
            async with asyncio.timeout(limits.BUDGET_CLOSE_WAIT_S):
                await self._idle()
                await asyncio.gather(*map(_without_ended_turns, self._lines.values()), return_exceptions=True)
        except TimeoutError:
            _log.info("budgets_closed_at_work", records=sum(line.worker is not None for line in self._lines.values()))
        self._is_closed = True
        await self._tasks.close()
        for line in self._lines.values():
            line.drop_all(Unavailable("this process ends"))

    async def _idle(self) -> None:
        while workers := [line.worker for line in self._lines.values() if line.worker is not None]:
            await asyncio.wait(workers)

    async def _counted(
        self,
        spend: Spend,
        ceilings: Mapping[str, Ceilings | None],
        windows: Callable[[], Windows],
        check: Callable[[], None],
    ) -> Verdict:
        charge = Charge(spend, ceilings, line_of=self._line, windows=windows, check=check)
        # One alarm in place of a time limit: the charge goes on whatever its caller is told.
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(limits.BUDGET_CHARGE_WAIT_S, charge.held_up, "no answer in time")
        try:
            return await charge.verdict()
        finally:
            alarm.cancel()

    def _line(self, scope: str) -> BudgetLine:
        if self._is_closed:
            raise Unavailable(f"{scope}: this process counts no more")
        line = self._lines.get(scope)
        if line is None:
            self._make_room()
            line = self._lines[scope] = self.line_kind(scope, self._store, self._chance, self._tasks)
        return line

    def _make_room(self) -> None:
        if len(self._lines) >= limits.BUDGET_LINES_MAX:
            idle = [scope for scope, line in self._lines.items() if line.worker is None]
            for scope in idle[: len(self._lines) // 2]:
                del self._lines[scope]


async def _without_ended_turns(line: BudgetLine) -> None:
    ended = line.turns_ended()
    if ended:
        await LaneRemoval(lambda lane: turn_of(lane) in ended).made_in(line)
