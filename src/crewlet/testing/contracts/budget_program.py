"""Programs of charges, refusals, crashes and clocks that disagree, followed beside a model of what must stand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal

from crewlet.base.errors import Unavailable
from crewlet.coordination import (
    COMPANY_SCOPE,
    UNCAPPED,
    BudgetRecord,
    Ceilings,
    Period,
    SeatShareMissing,
    Verdict,
    Windows,
)
from crewlet.testing.contracts.budget_rig import SEAT, BudgetProcess, BudgetRig

__all__ = ["PROGRAM_BEGINS", "BudgetStep", "Fault", "follow_budgets"]

PROGRAM_BEGINS: Final = datetime(2026, 11, 29, 23, 59, 50, tzinfo=UTC)
"""Ten seconds before the end of a week; a day later a month ends."""

_BOTH: Final = (COMPANY_SCOPE, SEAT)
_STEP_S: Final = 80.0
_LANE_DAYS: Final = 8

Fault = Literal[
    "none",
    "lost reply",
    "company cut",
    "company lands late",
    "company late",
    "seat late",
    "crash before",
    "crash between",
    "hang up",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStep:
    """One thing that one of two processes does.

    ``charge``: the next number of a lane, with a fault on its way; ``again``: its last number once more; ``refuse``: a
    call is turned away; ``pass``: time goes by for both; ``skew``: this process's clock goes wrong.
    """

    what: Literal["charge", "again", "refuse", "pass", "skew"]
    process: int = 0
    lane: str = "a"
    tokens: int = 1
    company: Ceilings = UNCAPPED
    seat: Ceilings = UNCAPPED
    fault: Fault = "none"
    seconds: int = 0


@dataclass(slots=True)
class _Slot:
    label: str = ""
    used: int = 0
    refused_at: datetime | None = None


@dataclass(slots=True)
class _Counter:
    """What must stand in one record."""

    slots: dict[Period, _Slot] = field(default_factory=lambda: {period: _Slot() for period in Period})
    lanes: dict[str, tuple[str, list[Period]]] = field(default_factory=dict[str, tuple[str, list[Period]]])

    def charge(self, lane: str, tokens: int, windows: Windows, ceilings: Ceilings) -> None:
        full: list[Period] = []
        for period, label in windows:
            slot = self.slots[period]
            if slot.label < label:
                slot.label, slot.used, slot.refused_at = label, 0, None
            cap = ceilings.of(period)
            if cap is not None and (slot.used >= cap or slot.used + tokens > cap):
                full.append(period)
            slot.used += tokens
        for period, slot in self.slots.items():
            if period in full:
                slot.refused_at = max(slot.refused_at or windows.at, windows.at)
            elif not full:
                slot.refused_at = None
        today = self.slots[Period.DAY].label
        for name, (day, _) in [*self.lanes.items()]:
            if (date.fromisoformat(today) - date.fromisoformat(day)).days > _LANE_DAYS:
                del self.lanes[name]
        self.lanes[lane] = today, full

    def refuse(self, windows: Windows, ceilings: Ceilings) -> bool:
        marked = False
        for period, label in windows:
            slot, cap = self.slots[period], ceilings.of(period)
            used = 0 if slot.label < label else slot.used
            if cap is not None and used >= cap:
                if slot.label < label:
                    slot.label, slot.used, slot.refused_at = label, 0, None
                slot.refused_at = max(slot.refused_at or windows.at, windows.at)
                marked = True
        return marked

    def stands(self) -> list[tuple[str, int, datetime | None]]:
        return [(slot.label, slot.used, slot.refused_at) for slot in self.slots.values()]


def _seen(record: BudgetRecord) -> list[tuple[str, int, datetime | None]]:
    return [(slot.label, slot.used, slot.refused_at) for slot in map(record.slot, Period)]


class _Follower:
    def __init__(self, rig: BudgetRig) -> None:
        self._rig = rig
        self._now = PROGRAM_BEGINS
        self._skews_s = [0, 0]
        self._processes: list[BudgetProcess] = []
        self._numbers: dict[str, int] = {}
        self._last: dict[str, BudgetStep] = {}
        self._wanted = {scope: _Counter() for scope in _BOTH}
        self._verdict: tuple[str, list[tuple[str, str]]] | None = None

    async def follow(self, program: list[BudgetStep]) -> None:
        self._processes = [await self._rig.process(), await self._rig.process()]
        for number, step in enumerate(program):
            self._set_clocks()
            async with asyncio.timeout(_STEP_S):
                await self._take(step)
            await self._compare(f"after step {number}, {step}")

    async def _take(self, step: BudgetStep) -> None:
        process = self._processes[step.process]
        if step.what == "pass":
            self._now += timedelta(seconds=step.seconds)
        elif step.what == "skew":
            self._skews_s[step.process] = step.seconds
        elif step.what == "refuse":
            await process.refuse(company=step.company, seat=step.seat)
            windows = process.windows()
            if not self._wanted[COMPANY_SCOPE].refuse(windows, step.company):
                self._wanted[SEAT].refuse(windows, step.seat)
        elif step.what == "charge":
            self._numbers[step.lane] = self._numbers.get(step.lane, 0) + 1
            self._last[step.lane] = step
            await self._charge(process, step)
        elif all(step.lane in counter.lanes for counter in self._wanted.values()):
            verdict = await self._made(process, self._last[step.lane])
            self._judged(step.lane, verdict)

    async def _charge(self, process: BudgetProcess, step: BudgetStep) -> None:
        if step.fault in {"none", "lost reply"}:
            if step.fault == "lost reply":
                self._rig.records.lose_reply(process.link)
                # It may be the reply to a write that another one had overtaken: then nothing is known of it.
                await asyncio.gather(self._made(process, step), return_exceptions=True)
            verdict = await self._made(process, step)
            self._count(step, process, *_BOTH)
            self._judged(step.lane, verdict)
        elif step.fault == "hang up":
            await self._hung_up(process, step)
        elif step.fault == "company cut":
            self._rig.records.cut_after_write(process.link)
            await self._fails(process, step, Unavailable)
            await self._rig.records.mend(process.link)
            verdict = await self._made(process, step)
            self._count(step, process, *_BOTH)
            self._judged(step.lane, verdict)
        elif step.fault == "company lands late":
            self._rig.records.withhold(process.link)
            await self._fails(process, step, Unavailable)
            await self._rig.records.deliver(process.link)
            verdict = await self._made(process, step)
            self._count(step, process, *_BOTH)
            self._judged(step.lane, verdict)
        else:
            await self._stopped_short(process, step)

    async def _stopped_short(self, process: BudgetProcess, step: BudgetStep) -> None:
        scope = COMPANY_SCOPE if step.fault in {"company late", "crash before"} else SEAT
        process.store.refuse(scope)
        await self._fails(process, step, Unavailable if scope == COMPANY_SCOPE else SeatShareMissing)
        if scope == SEAT:
            self._count(step, process, COMPANY_SCOPE)
        if step.fault in {"crash before", "crash between"}:
            process = await self._successor(step.process)
        else:
            process.store.let(scope)
        self._now += timedelta(seconds=step.seconds)
        self._set_clocks()
        verdict = await self._made(process, step)
        self._count(step, process, *(_BOTH if scope == COMPANY_SCOPE else (SEAT,)))
        self._judged(step.lane, verdict)

    async def _hung_up(self, process: BudgetProcess, step: BudgetStep) -> None:
        let_go, before = process.store.hold(SEAT), process.store.attempts
        charge = self._rig.tasks.start("charge", self._made(process, step))
        await self._rig.until(lambda: process.store.attempts >= before + 2, what="a seat's write under way")
        charge.cancel()
        await asyncio.wait([charge])
        let_go()
        self._judged(step.lane, await self._made(process, step))
        self._count(step, process, *_BOTH)

    async def _successor(self, place: int) -> BudgetProcess:
        """The process is killed; another has its place, and its clock."""
        dead = self._processes[place]
        await self._rig.records.cut(dead.link)
        await dead.budgets.close()
        successor = self._processes[place] = await self._rig.process()
        return successor

    async def _made(self, process: BudgetProcess, step: BudgetStep) -> Verdict:
        return await process.charge(
            step.tokens,
            lane=step.lane,
            number=self._numbers[step.lane],
            company=step.company,
            seat=step.seat,
        )

    async def _fails(self, process: BudgetProcess, step: BudgetStep, kind: type[Unavailable]) -> None:
        said = await asyncio.gather(self._made(process, step), return_exceptions=True)
        assert isinstance(said[0], kind), f"{step}: {said[0]!r} from a store that did not answer"

    def _count(self, step: BudgetStep, process: BudgetProcess, *scopes: str) -> None:
        for scope in scopes:
            ceilings = step.company if scope == COMPANY_SCOPE else step.seat
            self._wanted[scope].charge(step.lane, step.tokens, process.windows(), ceilings)

    def _judged(self, lane: str, verdict: Verdict) -> None:
        self._verdict = lane, [(each.scope, each.period) for each in verdict.refusals]

    async def _compare(self, when: str) -> None:
        self._set_clocks()
        for scope, counter in self._wanted.items():
            if counter.lanes or any(slot.label for slot in counter.slots.values()):
                assert _seen(await self._rig.stored(scope)) == counter.stands(), f"{scope} {when}"
        if self._verdict is not None:
            lane, found = self._verdict
            wanted = [(scope, period) for scope in _BOTH for period in self._wanted[scope].lanes[lane][1]]
            assert found == wanted, f"the verdict on {lane} {when}"
            self._verdict = None

    def _set_clocks(self) -> None:
        for process, skew_s in zip(self._processes, self._skews_s, strict=True):
            process.at = self._now + timedelta(seconds=skew_s)


async def follow_budgets(rig: BudgetRig, program: list[BudgetStep]) -> None:
    """Take the steps one after another. Raises ``AssertionError`` where what stands is not what the model says."""
    await _Follower(rig).follow(program)
