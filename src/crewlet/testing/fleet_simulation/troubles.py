"""What befalls a simulated fleet, each trouble with the time after which it is over; several go on at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

from crewlet.coordination import LEASE_PROTOCOL
from crewlet.testing.fleet_simulation.node import SimulatedNode
from crewlet.testing.fleet_simulation.world import FleetWorld

__all__ = ["Troubles"]

_FEWEST = 2
_OLDER_PROTOCOL = LEASE_PROTOCOL - 1


class Troubles:
    """The troubles of one hour. ``happened`` counts them by name, ``story`` says when each began."""

    def __init__(self, world: FleetWorld, chance: Random) -> None:
        self._world = world
        self._chance = chance
        self._repairs: list[tuple[float, Callable[[], object]]] = []
        self._under_way: list[tuple[SimulatedNode, asyncio.Task[None]]] = []
        self._kinds = (
            self._crash,
            self._leave,
            self._join,
            self._old_joins,
            self._pause,
            self._cut,
            self._outage,
            self._lost_reply,
            self._late_write,
            self._stuck,
            self._calm,
        )
        self._to_come: list[Callable[[], None]] = []
        self.happened: Counter[str] = Counter()
        self.story: list[str] = []

    def befall(self) -> None:
        """Let one trouble begin, by chance."""
        if not self._world.plan.each_in_turn:
            self._chance.choice(self._kinds)()
            return
        if not self._to_come:
            self._to_come = self._chance.sample(self._kinds, len(self._kinds))
        self._to_come.pop()()

    def repair_due(self) -> None:
        """End what is over by now."""
        now_s = self._world.clock.elapsed_s()
        due = [repair for at_s, repair in self._repairs if at_s <= now_s]
        self._repairs = [each for each in self._repairs if each[0] > now_s]
        for repair in due:
            repair()

    async def heal(self) -> None:
        """End every trouble, and wait for whoever leaves; then the fleet is its first size again, of this build."""
        due, self._repairs = self._repairs, []
        for _, repair in due:
            repair()
        await self.settled()
        for node in self._world.serving():
            if node.protocol < LEASE_PROTOCOL or node.number >= self._world.plan.nodes:
                self.leaves(node)
        await self.settled()
        there = {node.number for node in self._world.serving()}
        for number in range(self._world.plan.nodes):
            if number not in there:
                self.starts(number)
        await self.settled()

    async def settled(self) -> None:
        """Return once every start and every end that is under way is done."""
        begun, self._under_way = self._under_way, []
        for node, task in begun:
            if not (node.dead and node.process.stands_still):
                await asyncio.wait((task,))

    def starts(self, number: int, protocol: int = LEASE_PROTOCOL) -> None:
        """A process starts."""
        self._tell("starts" if protocol == LEASE_PROTOCOL else "starts with an older build", f"n{number}")
        started = self._world.start(number, protocol=protocol)
        self._under_way.append((self._world.nodes[-1], started))

    def leaves(self, node: SimulatedNode) -> None:
        """A process ends as it should."""
        self._tell("leaves", node.owner)
        self._under_way.append((node, self._world.leave(node)))

    def crashes(self, node: SimulatedNode) -> None:
        """A process is killed."""
        self._tell("crashes", node.owner)
        self._world.kill(node)

    def _crash(self) -> None:
        if (node := self._spare()) is not None:
            self.crashes(node)

    def _leave(self) -> None:
        if (node := self._spare()) is not None:
            self.leaves(node)

    def _join(self) -> None:
        if (number := self._free_number()) is not None:
            self.starts(number)

    def _old_joins(self) -> None:
        if (number := self._free_number()) is None:
            return
        self.starts(number, _OLDER_PROTOCOL)
        node = self._world.nodes[-1]
        self._later(self._chance.uniform(20.0, 120.0), lambda: self._old_goes(node))

    def _old_goes(self, node: SimulatedNode) -> None:
        if node.serves:
            self._chance.choice((self.leaves, self.crashes))(node)

    def _pause(self) -> None:
        awake = [node for node in self._world.serving() if not node.process.stands_still]
        if awake:
            node, for_s = self._chance.choice(awake), self._chance.choice((1.0, 12.0, 44.0, 46.0, 60.0, 150.0))
            self._tell("stands still", f"{node.owner} for {for_s:g} s")
            node.process.stop()
            self._later(for_s, lambda: self._world.wake(node))

    def _cut(self) -> None:
        there = self._world.serving()
        if there:
            node, for_s = self._chance.choice(there), self._chance.choice((2.0, 20.0, 44.9, 60.0, 120.0))
            self._tell("cut off", f"{node.owner} for {for_s:g} s")
            node.cut(off=True)
            self._later(for_s, lambda: node.cut(off=node.dead))

    def _outage(self) -> None:
        for_s = self._chance.choice((1.0, 10.0, 30.0, 50.0, 90.0))
        self._tell("store outage", f"for {for_s:g} s")
        self._world.store_down(down=True)
        self._later(for_s, lambda: self._world.store_down(down=False))

    def _lost_reply(self) -> None:
        there = self._world.serving()
        if there:
            node = self._chance.choice(there)
            self._tell("lost reply", node.owner)
            self._chance.choice(node.stores).link.lose_reply()

    def _late_write(self) -> None:
        there = self._world.serving()
        if there:
            link = self._chance.choice(self._chance.choice(there).stores).link
            self._tell("late write", "")
            link.withhold()
            self._later(self._chance.uniform(0.1, 90.0), link.deliver)

    def _stuck(self) -> None:
        there = self._world.serving()
        if there:
            node, for_s = self._chance.choice(there), self._chance.uniform(5.0, 120.0)
            self._tell("does not let go", f"{node.owner} for {for_s:.0f} s")
            node.stuck = True
            self._later(for_s, lambda: _let_go(node))

    def _calm(self) -> None:
        self._tell("calm", "")

    def _spare(self) -> SimulatedNode | None:
        there = self._world.serving()
        return self._chance.choice(there) if len(there) > _FEWEST else None

    def _free_number(self) -> int | None:
        taken = {node.number for node in self._world.serving()}
        free = [number for number in range(self._world.plan.nodes + 2) if number not in taken]
        return self._chance.choice(free) if free else None

    def _later(self, after_s: float, repair: Callable[[], object]) -> None:
        self._repairs.append((self._world.clock.elapsed_s() + after_s, repair))

    def _tell(self, name: str, about: str) -> None:
        self.happened[name] += 1
        self.story.append(f"{self._world.clock.elapsed_s():.1f} {name} {about}".rstrip())


def _let_go(node: SimulatedNode) -> None:
    node.stuck = False
