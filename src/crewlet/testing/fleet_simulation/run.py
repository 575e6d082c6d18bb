"""One bad hour of a fleet: nodes come, go, die, are cut off and come back, the store fails; then all is well."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

from crewlet.testing.fleet_simulation.world import FleetPlan, FleetWorld, SimulatedNode
from crewlet.testing.virtual_time import run_virtual

__all__ = ["FleetRun", "simulate_fleet"]

_STEPS = 40
_CHECK_EVERY_S = 0.5
_LIMIT_S = 100_000.0


@dataclass(slots=True)
class FleetRun:
    """What was found, and how much happened: ``findings`` is empty where every rule held."""

    seed: int
    findings: list[str] = field(default_factory=list[str])
    happened: Counter[str] = field(default_factory=Counter[str])
    grants: int = 0


def simulate_fleet(seed: int, plan: FleetPlan | None = None) -> FleetRun:
    """Run the hour of ``seed``.

    Checked twice a second: no seat admits turns on two nodes at once. At the end: no epoch of a seat was granted twice;
    once all is well every seat that some live node may run is held, within the nodes' shares; and then nothing moves.
    """

    async def hour() -> FleetRun:
        return await _Hour(seed, plan or FleetPlan()).run()

    return run_virtual(hour(), limit_s=_LIMIT_S)


class _Hour:
    def __init__(self, seed: int, plan: FleetPlan) -> None:
        self._chance = Random(seed)
        self._plan = plan
        self._world = FleetWorld(plan, seed)
        self._run = FleetRun(seed)

    async def run(self) -> FleetRun:
        world = self._world
        for number in range(self._plan.nodes):
            await world.start(number, skew_s=self._chance.choice((0.0, -7200.0, 3600.0)))
        acts = (self._kill, self._cut, self._end, self._join, self._outage, self._calm)
        for _ in range(_STEPS):
            await self._chance.choice(acts)()
            await self._watch(self._chance.uniform(1.0, 30.0))
        await self._heal()
        await self._watch(self._until_rest_s())
        self._check_rest()
        before = self._holders()
        await self._watch(60.0)
        if self._holders() != before:
            self._found("seats moved after the fleet had come to rest")
        self._check_epochs()
        await world.close()
        return self._run

    async def _watch(self, seconds: float) -> None:
        for _ in range(max(round(seconds / _CHECK_EVERY_S), 1)):
            await asyncio.sleep(_CHECK_EVERY_S)
            admitting = Counter(handle for handle, _ in self._world.admitting())
            for handle in [handle for handle, nodes in admitting.items() if nodes > 1]:
                self._found(f"{handle} admits turns on {admitting[handle]} nodes at once")

    async def _kill(self) -> None:
        await self._with_one("kill", self._killed)

    async def _killed(self, node: SimulatedNode) -> None:
        self._world.kill(node)

    async def _end(self) -> None:
        await self._with_one("end", self._world.end)

    async def _cut(self) -> None:
        await self._with_one("cut", self._cut_for_a_while)

    async def _cut_for_a_while(self, node: SimulatedNode) -> None:
        node.cut(off=True)
        await self._watch(self._chance.choice((2.0, 20.0, 60.0, 120.0)))
        node.cut(off=False)

    async def _join(self) -> None:
        names = {node.name for node in self._world.alive()}
        free = [number for number in range(self._plan.nodes + 2) if f"n{number}" not in names]
        if free:
            self._run.happened["join"] += 1
            await self._world.start(self._chance.choice(free), skew_s=self._chance.choice((0.0, -7200.0, 3600.0)))

    async def _outage(self) -> None:
        self._run.happened["outage"] += 1
        self._world.store_down(down=True)
        await self._watch(self._chance.choice((1.0, 10.0, 50.0, 90.0)))
        self._world.store_down(down=False)

    async def _calm(self) -> None:
        await self._watch(self._chance.uniform(10.0, 60.0))

    async def _with_one(self, name: str, act: Callable[[SimulatedNode], Awaitable[None]]) -> None:
        alive = self._world.alive()
        # A few stay: a company without nodes has nothing to look at.
        if len(alive) > 2:  # noqa: PLR2004 - a few
            self._run.happened[name] += 1
            await act(self._chance.choice(alive))

    async def _heal(self) -> None:
        self._world.store_down(down=False)
        for node in self._world.alive():
            node.cut(off=False)
        if not any(node.name in {"n0", "n3", "n6", "n9"} for node in self._world.alive()):
            await self._world.start(0)

    def _until_rest_s(self) -> float:
        """A lapse, the fewest claims a pass that one node makes, and as long again to share out what came late."""
        return self._plan.ttl_s + 15.0 + 3 * 5.0 * (self._plan.seats / 2)

    def _holders(self) -> dict[str, str]:
        return {handle: node.owner for node in self._world.alive() for handle in node.host.held()}

    def _check_rest(self) -> None:
        alive, holders = self._world.alive(), self._holders()
        missing = [seat.handle for seat in self._world.company if seat.handle not in holders]
        if missing:
            self._found(f"nobody holds {', '.join(missing)} although all is well")
        share = -(-self._plan.seats // len(alive)) + self._plan.pinned
        for owner, held in Counter(holders.values()).items():
            if held > share:
                self._found(f"{owner} holds {held} seats and its share is at most {share}")

    def _check_epochs(self) -> None:
        grants = [grant for node in self._world.nodes.values() for grant in node.grants]
        self._run.grants = len(grants)
        for (handle, epoch), times in Counter(grants).items():
            if times > 1:
                self._found(f"epoch {epoch} of {handle} was granted {times} times")

    def _found(self, what: str) -> None:
        if what not in self._run.findings:
            self._run.findings.append(what)
