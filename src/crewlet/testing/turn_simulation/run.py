"""One bad day of a company's turns, from one seed: its troubles and its mail, then rest, and what is true then."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from crewlet.testing.simulated import in_processes, planted
from crewlet.testing.turn_simulation.faults import NO_FAULT, TurnFault
from crewlet.testing.turn_simulation.plan import TurnPlan
from crewlet.testing.turn_simulation.reports import Reports
from crewlet.testing.turn_simulation.rules import Finding
from crewlet.testing.turn_simulation.settled import SettledCompany
from crewlet.testing.turn_simulation.traffic import Traffic
from crewlet.testing.turn_simulation.troubles import Troubles
from crewlet.testing.turn_simulation.world import TurnWorld
from crewlet.testing.virtual_time import run_virtual

__all__ = ["TurnRun", "simulate_turns"]

_LIMIT_S = 1_000_000.0
_LOOK_EVERY_S = 1.0
_REST_LOOK_S = 20.0


@dataclass(slots=True)
class TurnRun:
    """What was found, and how much happened: ``findings`` is empty where every rule held."""

    seed: int
    findings: list[Finding]
    happened: Counter[str] = field(default_factory=Counter[str])
    story: list[str] = field(default_factory=list[str])
    triggers: int = 0
    rested_s: float = 0.0
    virtual_s: float = 0.0


def simulate_turns(seed: int, plan: TurnPlan | None = None, fault: TurnFault = NO_FAULT) -> TurnRun:
    """Run the day of ``seed``, with ``fault`` planted; every rule of ``RULES`` is held to. The fault has a plan too."""

    async def day() -> TurnRun:
        in_processes(asyncio.get_running_loop())
        return await _Day(seed, plan or fault.plan).run()

    with planted(fault.replaced):
        return run_virtual(day(), limit_s=_LIMIT_S)


class _Day:
    def __init__(self, seed: int, plan: TurnPlan) -> None:
        self._chance = Random(seed)
        self._plan = plan
        self._world = TurnWorld(plan, seed)
        self._reports = Reports()
        self._traffic = Traffic(self._world, self._chance)
        self._troubles = Troubles(self._world, self._traffic, self._chance)
        self._settled = SettledCompany(self._world, self._reports)
        self._run = TurnRun(seed, self._world.findings.all)

    async def run(self) -> TurnRun:
        run, world = self._run, self._world
        with self._reports.heard():
            try:
                await self._live()
            finally:
                await world.close()
        run.happened = self._troubles.happened + world.outside.happened
        run.happened["resumed"] = sum(world.log.resumed.values())
        run.happened["dead letters"] = self._settled.letters
        run.happened["skipped"] = self._settled.skipped
        run.happened["replies"] = len(world.log.replies)
        run.happened["dead letters unheard"] = self._settled.unheard
        run.happened["charges uncounted"] = len(self._reports.said.get("turn_charge_uncounted", ()))
        run.happened["killed"] = sum(node.dead and not node.leaving for node in world.nodes)
        run.story, run.triggers = self._troubles.story, len(world.broker.triggers)
        run.virtual_s = world.clock.elapsed_s()
        return run

    async def _live(self) -> None:
        await self._world.open()
        for number in range(self._plan.nodes):
            self._troubles.starts(f"n{number}")
        for _ in range(self._plan.steps):
            await self._troubles.befall()
            await self._let_pass(self._chance.uniform(0.5, self._plan.step_s))
        await self._troubles.heal()
        await self._rest()

    async def _let_pass(self, seconds: float) -> None:
        until_s = self._world.clock.elapsed_s() + seconds
        while self._world.clock.elapsed_s() < until_s:
            await asyncio.sleep(min(_LOOK_EVERY_S, until_s - self._world.clock.elapsed_s()))
            await self._troubles.repair_due()

    async def _rest(self) -> None:
        begun_s = self._world.clock.elapsed_s()
        calm = 0
        while calm < 2:  # noqa: PLR2004 - what a turn has just sent is looked at too
            await self._let_pass(_REST_LOOK_S)
            await self._troubles.lift_ceilings()
            calm = 0 if self._settled.left() or self._world.in_flight() else calm + 1
            self._run.rested_s = round(self._world.clock.elapsed_s() - begun_s, 1)
            if self._run.rested_s > self._plan.rest_within_s:
                left = self._settled.left()
                what = f"after {self._run.rested_s:g} s {[*left]} have mail left, {self._world.in_flight()} turns run"
                self._world.findings.add("rest", what)
                return
        self._settled.check()
