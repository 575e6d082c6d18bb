"""Whatever sweeps, nodes and their links do, no seat of the company is without its mail, and no gone one keeps any."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crewlet.base import limits
from crewlet.base.errors import CrewletError
from crewlet.base.fence import OpenFence
from crewlet.coordination import MAILBOXES
from crewlet.node.mailboxes import ensure_mailboxes
from crewlet.queue import Subscription, mailboxes_of
from crewlet.testing import run_virtual
from tests.unit.duties.mailbox_rig import DAY_S, TICK_S, Company, Roster, Sweeper, elapsed_s

SEAT = "cto"
STEPS = (
    *["add"] * 3,
    "remove",
    *["tick"] * 4,
    *["slow"] * 2,
    "cancel",
    "kill",
    "cut",
    "mend",
    "lose",
    "cut after",
    "deaf",
    "quick",
    "moment",
    "quarter",
    "day",
)


class History:
    """One random history of a seat that comes and goes, with two sweeps and the node that has the newest document."""

    def __init__(self) -> None:
        self.company = Company(roster=Roster("ceo"))
        self.sweepers = [self._sweeper(0), self._sweeper(1)]
        self.born = 2
        self.ticks: dict[int, asyncio.Task[None]] = {}
        self.walk: asyncio.Task[None] | None = None
        self.sent = 0
        self.served = False
        self.removed_s: float | None = None
        self.slow_s = 0.0

    def _sweeper(self, number: int) -> Sweeper:
        sweeper = self.company.sweeper(f"s{number}")
        sweeper.queue.before_delete = self._before_delete
        return sweeper

    async def _before_delete(self, _: Subscription) -> None:
        await asyncio.sleep(self.slow_s)

    async def take(self, step: str, which: int) -> None:  # noqa: C901, PLR0912 - one short case a step
        number = which % 2
        sweeper = self.sweepers[number]
        match step:
            case "add":
                await self._add()
            case "remove":
                await self._remove()
            case "tick":
                if number not in self.ticks or self.ticks[number].done():
                    self.ticks[number] = asyncio.ensure_future(self._tick(sweeper))
            case "cancel":
                await self._cancelled(number)
            case "kill":
                for store in (*sweeper.links.values(), *sweeper.process.stores):
                    store.link.cut = True
                sweeper.queue.crash()
                await self._cancelled(number)
                self.sweepers[number] = self._sweeper(self.born)
                self.born += 1
            case "cut":
                sweeper.links[MAILBOXES.name].link.cut = True
            case "mend":
                self._mend(sweeper)
            case "lose":
                sweeper.links[MAILBOXES.name].link.lose_reply()
            case "cut after":
                sweeper.links[MAILBOXES.name].link.cut_after_write()
            case "deaf":
                sweeper.queue.cut()
            case "slow" | "quick":
                self.slow_s = 9.0 if step == "slow" else 0.0
            case "quarter":
                await asyncio.sleep(TICK_S)
            case "day":
                await asyncio.sleep(DAY_S)
            case _:
                await asyncio.sleep(0.01)

    async def check(self) -> None:
        """The seat, once a node has made its mailboxes, has them and all its mail until it is gone for a day."""
        if self.walk is not None and self.walk.done() and SEAT in self.company.roster.handles and not self.served:
            await self.company.write_to(SEAT, f"m{self.sent}")
            self.sent, self.served = self.sent + 1, True
            self.first = self.sent
        gone_s = 0.0 if self.removed_s is None else elapsed_s() - self.removed_s
        if self.served and gone_s < DAY_S:
            assert self.company.mailboxes_left(SEAT) == set(mailboxes_of(SEAT))
            assert self.company.mail_of(SEAT) >= 1

    async def ends_well(self) -> None:
        """With every link whole and nobody slow, two more ticks put everything in order."""
        self.slow_s = 0.0
        for number in (0, 1):
            await self._cancelled(number)
            self._mend(self.sweepers[number])
        if self.walk is not None:
            await self.walk
        await asyncio.sleep(DAY_S + limits.MAILBOX_MARK_ABANDONED_S)
        for _ in range(2):
            await self.sweepers[0].sweep.run(OpenFence())
            await asyncio.sleep(DAY_S + TICK_S)
        await self.sweepers[0].sweep.run(OpenFence())
        record = await self.company.record(SEAT)
        if SEAT in self.company.roster.handles:
            assert self.company.mailboxes_left(SEAT) == set(mailboxes_of(SEAT))
            assert record is not None
            assert (record.absent_since, record.is_retiring) == (None, False)
        else:
            assert self.company.mailboxes_left(SEAT) == set()
            assert record is None

    async def close(self) -> None:
        await self.company.close()

    async def _add(self) -> None:
        if SEAT not in self.company.roster.handles:
            self.company.roster.handles.add(SEAT)
            self.removed_s, self.served = None, False
            self.walk = asyncio.ensure_future(
                ensure_mailboxes(self.company.queue, self.company.registry, sorted(self.company.roster.handles))
            )

    async def _remove(self) -> None:
        if SEAT in self.company.roster.handles and (self.walk is None or self.walk.done()):
            self.company.roster.handles.discard(SEAT)
            self.removed_s = elapsed_s()

    async def _tick(self, sweeper: Sweeper) -> None:
        with suppress(CrewletError):
            await sweeper.sweep.run(OpenFence())

    async def _cancelled(self, number: int) -> None:
        task = self.ticks.pop(number, None)
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    def _mend(self, sweeper: Sweeper) -> None:
        sweeper.links[MAILBOXES.name].link.cut = False
        sweeper.links[MAILBOXES.name].link.next_write = "arrives"
        sweeper.queue.heal()


RIPE = [("remove", 0, 0.0), ("tick", 0, 1.0), ("day", 0, 0.0)]
"""The seat was missed a day ago."""


async def lived(steps: list[tuple[str, int, float]]) -> None:
    history = History()
    for step, which, pause_s in [("add", 0, 1.0), *steps]:
        await history.take(step, which)
        await asyncio.sleep(pause_s)
        await history.check()
    await history.ends_well()
    await history.close()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(STEPS), st.integers(0, 1), st.sampled_from([0.0, 0.005, 1.0, 20.0])), max_size=40
    )
)
@example([("slow", 0, 0.0), ("tick", 0, 1.0), ("add", 0, 20.0), ("moment", 0, 20.0)])
@example(
    [
        *RIPE,
        ("slow", 0, 0.0),
        ("tick", 0, 1.0),
        ("add", 0, 1.0),
        ("kill", 0, 1.0),
        ("tick", 1, 20.0),
        ("quarter", 0, 1.0),
        ("tick", 1, 20.0),
    ]
)
def test_no_seat_of_the_company_is_without_its_mail_and_no_other_keeps_any(steps: list[tuple[str, int, float]]) -> None:
    run_virtual(lived(steps), limit_s=200 * DAY_S)
    run_virtual(lived([*RIPE, *steps]), limit_s=200 * DAY_S)
