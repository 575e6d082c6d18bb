"""One bad hour of a fleet: from cold through its troubles to rest, then a rolling update, from one seed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from crewlet.base import limits
from crewlet.coordination import LEASE_PROTOCOL
from crewlet.testing.fleet_simulation.decoding import decoded_once
from crewlet.testing.fleet_simulation.faults import NO_FAULT, FleetFault
from crewlet.testing.fleet_simulation.moves import Restart, moved_too_often
from crewlet.testing.fleet_simulation.plan import FleetPlan
from crewlet.testing.fleet_simulation.reports import Reports
from crewlet.testing.fleet_simulation.rest import FleetAtRest
from crewlet.testing.fleet_simulation.rules import Finding
from crewlet.testing.fleet_simulation.troubles import Troubles
from crewlet.testing.fleet_simulation.world import FleetWorld
from crewlet.testing.simulated import in_processes, planted
from crewlet.testing.virtual_time import run_virtual

__all__ = ["FleetRun", "simulate_fleet"]

_LOOK_EVERY_S = 0.5
_LIMIT_S = 1_000_000.0
_GATE_IDLE = "GATE_VIEW_IDLE_S"


@dataclass(slots=True)
class FleetRun:
    """What was found, and how much happened: ``findings`` is empty where every rule held.

    ``rested_s``: how long the fleet took to come to rest from cold, after its troubles, and after the update.
    ``moved``: how many seats a rolling update moved how often.
    """

    seed: int
    findings: list[Finding]
    happened: Counter[str] = field(default_factory=Counter[str])
    story: list[str] = field(default_factory=list[str])
    grants: int = 0
    calls: int = 0
    rested_s: list[float] = field(default_factory=list[float])
    moved: Counter[int] = field(default_factory=Counter[int])
    virtual_s: float = 0.0


def simulate_fleet(seed: int, plan: FleetPlan | None = None, fault: FleetFault = NO_FAULT) -> FleetRun:
    """Run the hour of ``seed``, with ``fault`` planted; every rule of ``RULES`` is held to while it lasts."""
    plan = plan or FleetPlan()

    async def hour() -> FleetRun:
        in_processes(asyncio.get_running_loop())
        return await _Hour(seed, plan).run()

    with decoded_once(), _sleeping_after(plan.gate_idle_s), planted(fault.replaced):
        return run_virtual(hour(), limit_s=_LIMIT_S)


@contextmanager
def _sleeping_after(idle_s: float) -> Generator[None]:
    before = limits.GATE_VIEW_IDLE_S
    setattr(limits, _GATE_IDLE, idle_s)
    try:
        yield
    finally:
        setattr(limits, _GATE_IDLE, before)


class _Hour:
    def __init__(self, seed: int, plan: FleetPlan) -> None:
        self._chance = Random(seed)
        self._plan = plan
        self._world = FleetWorld(plan, seed)
        self._reports = Reports(self._world.clock.elapsed_s)
        self._troubles = Troubles(self._world, self._chance)
        self._rest = FleetAtRest(self._world, self._reports)
        self._run = FleetRun(seed, self._world.findings.all)

    async def run(self) -> FleetRun:
        with self._reports.heard():
            try:
                await self._from_cold()
                await self._bad_times()
                await self._without_a_home()
                await self._beside_an_older_build()
                await self._all_is_well()
                await self._rolling_update()
            finally:
                await self._world.close()
        for broken in self._reports.broken():
            self._world.findings.add("whole", broken)
        run, calls = self._run, self._world.calls
        run.happened, run.story = self._troubles.happened, self._troubles.story
        run.grants, run.calls = sum(calls.grants.values()), calls.calls
        run.virtual_s = self._world.clock.elapsed_s()
        return run

    async def _from_cold(self) -> None:
        for number in range(self._plan.nodes):
            self._troubles.starts(number)
            await asyncio.sleep(self._plan.started_within_s / self._plan.nodes)
        if self._chance.random() < self._plan.from_rest:
            await self._settle()

    async def _bad_times(self) -> None:
        for _ in range(self._plan.troubles):
            self._troubles.befall()
            await self._watch(self._chance.uniform(1.0, self._plan.trouble_every_s))

    async def _without_a_home(self) -> None:
        """Whoever may run the pinned seats goes: that has to be said."""
        if self._chance.random() < 1.0 - self._plan.hardships:
            return
        await self._troubles.heal()
        for node in self._world.serving():
            if self._plan.is_special(node.number):
                self._chance.choice((self._troubles.leaves, self._troubles.crashes))(node)
        await self._settle()

    async def _beside_an_older_build(self) -> None:
        """A node of an older build joins and one of this build goes: what nobody may claim then has to be said."""
        if self._chance.random() < 1.0 - self._plan.hardships:
            return
        await self._troubles.heal()
        self._troubles.starts(self._plan.nodes, LEASE_PROTOCOL - 1)
        self._chance.choice((self._troubles.leaves, self._troubles.crashes))(self._world.serving()[0])
        await self._settle()

    async def _all_is_well(self) -> None:
        await self._troubles.heal()
        await self._settle()

    async def _rolling_update(self) -> None:
        """Restart one node after another, each once the one before has its share again."""
        groups = self._rest.groups()
        restarts: list[Restart] = []
        updated = self._world.serving()[: self._plan.updated]
        for node in updated:
            before, held = Counter(self._world.moves), [*node.held]
            self._troubles.leaves(node)
            await self._troubles.settled()
            await self._watch(self._chance.choice((0.0, 3.0, 8.0)))
            self._troubles.starts(node.number)
            await self._troubles.settled()
            self._run.rested_s.append(round(await self._rest.come_to_rest(self._watch), 1))
            if node is updated[-1]:
                await self._settle()
            restarts.append(Restart(node.owner, held, self._world.moves - before))
        self._run.moved = Counter(sum((Counter(restart.moved) for restart in restarts), Counter[str]()).values())
        for broken in moved_too_often(restarts, groups):
            self._world.findings.add("moves", broken)

    async def _settle(self) -> None:
        await self._troubles.settled()
        self._run.rested_s.append(round(await self._rest.settle(self._watch), 1))

    async def _watch(self, seconds: float) -> None:
        until_s = self._world.clock.elapsed_s() + seconds
        mails = 0.0
        while self._world.clock.elapsed_s() < until_s:
            await asyncio.sleep(_LOOK_EVERY_S)
            self._troubles.repair_due()
            self._world.look()
            mails += self._plan.mails_a_s * _LOOK_EVERY_S
            while mails >= 1.0:
                self._world.mail()
                mails -= 1.0
