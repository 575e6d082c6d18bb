"""What befalls a simulated company, each trouble with the time after which it is over; several go on at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from random import Random

from crewlet.base.errors import Unavailable
from crewlet.testing.turn_simulation.node import SimulatedTurnNode
from crewlet.testing.turn_simulation.plan import HANDLES, company_source
from crewlet.testing.turn_simulation.traffic import Traffic
from crewlet.testing.turn_simulation.world import TurnWorld

__all__ = ["Troubles"]

_STEPS_MAX = 400


class Troubles:
    """The troubles of one day. ``happened`` counts them by name, ``story`` says when each began."""

    def __init__(self, world: TurnWorld, traffic: Traffic, chance: Random) -> None:
        self._world = world
        self._traffic = traffic
        self._chance = chance
        self._repairs: list[tuple[float, Callable[[], object]]] = []
        self._later_again: list[tuple[float, Callable[[], Awaitable[None]]]] = []
        self._paused: set[str] = set()
        self.happened: Counter[str] = Counter()
        self.story: list[str] = []
        self._kinds: tuple[tuple[Callable[[], Awaitable[None]], int], ...] = (
            (self._burst, 10),
            (self._again, 2),
            (self._steer, 3),
            (self._dies_at_a_step, 7),
            (self._leaves, 3),
            (self._joins, 3),
            (self._stands_still, 2),
            (self._cut_off, 2),
            (self._store_outage, 2),
            (self._broker_outage, 2),
            (self._lost_replies, 3),
            (self._late_write, 1),
            (self._pause, 2),
            (self._no_model, 1),
            (self._no_threads, 1),
            (self._ceilings, 2),
        )

    async def befall(self) -> None:
        """Let one trouble begin, by chance."""
        kinds, weights = zip(*self._kinds, strict=True)
        await self._chance.choices(kinds, weights)[0]()

    async def repair_due(self) -> None:
        """End what is over by now."""
        now_s = self._world.clock.elapsed_s()
        due = [each for at_s, each in self._repairs if at_s <= now_s]
        self._repairs = [each for each in self._repairs if each[0] > now_s]
        for repair in due:
            repair()
        ready = [each for at_s, each in self._later_again if at_s <= now_s]
        self._later_again = [each for each in self._later_again if each[0] > now_s]
        for each in ready:
            await each()

    async def heal(self) -> None:
        """End every trouble; then there are as many processes as at first, and nothing holds mail back but midnight."""
        self._tell("all is well")
        self._repairs = [(0.0, each) for _, each in self._repairs]
        self._later_again = [(0.0, each) for _, each in self._later_again]
        await self.repair_due()
        for number in range(self._world.plan.nodes - len(self._world.serving())):
            self.starts(f"h{number}")
        for node in self._world.nodes:
            node.steps_left = 0
        for handle in [*self._paused]:
            await self._resume(handle)
        await self._traffic.burst()
        if self._chance.random() < 0.5:  # noqa: PLR2004 - else the windows turn over first
            await self._world.apply(company_source())

    async def lift_ceilings(self) -> None:
        """The windows have turned over once, where they had to: from now on there is room."""
        if self._world.is_past_midnight and self._world.has_ceilings:
            self._tell("no ceilings any more")
            await self._world.apply(company_source())

    def starts(self, name: str) -> None:
        """A process begins."""
        self._tell("starts", name)
        node = self._world.start(name)
        if self._chance.random() < 0.2:  # noqa: PLR2004 - now and then one dies while it begins
            node.steps_left = self._chance.randint(1, _STEPS_MAX)

    async def _burst(self) -> None:
        self._tell("burst", f"of {await self._traffic.burst()}")

    async def _again(self) -> None:
        if await self._traffic.again():
            self._tell("the same again")

    async def _steer(self) -> None:
        await self._traffic.burst()
        for _ in range(3):
            self._later(self._chance.uniform(0.5, 20.0), self._note)

    def _note(self) -> None:
        """Somebody tells a turn something, if one runs just now; often its process ends soon after."""
        running = [node for node in self._world.serving() if not node.process.stands_still and node.turns]
        if not running:
            return
        node = self._chance.choice(running)
        turn_id = self._chance.choice(sorted(node.turns))
        note_id = f"note-{self.happened['note']}"
        self._tell("note", f"to {turn_id} on {node.owner}")
        node.process.run(node.steer(turn_id, note_id))
        if self._chance.random() < 0.4 and not node.steps_left:  # noqa: PLR2004 - often enough in the middle of it
            node.steps_left = self._chance.randint(1, 60)
            self._later(self._chance.uniform(1.0, 30.0), partial(self._replaced, node))

    async def _dies_at_a_step(self) -> None:
        if (node := self._any()) is not None:
            node.steps_left = self._chance.randint(1, _STEPS_MAX)
            self._tell("dies", f"{node.owner} {node.steps_left} steps on")
            self._later(self._chance.uniform(1.0, 30.0), partial(self._replaced, node))
            await self._traffic.burst()

    def _replaced(self, node: SimulatedTurnNode) -> None:
        if node.dead:
            self.starts(node.name)

    async def _leaves(self) -> None:
        if (node := self._any()) is not None:
            self._tell("leaves", node.owner)
            self._world.leave(node)
            self._later(self._chance.uniform(0.0, 30.0), lambda: self.starts(node.name))

    async def _joins(self) -> None:
        if len(self._world.serving()) <= self._world.plan.nodes:
            self.starts(f"j{len(self._world.nodes)}")

    async def _stands_still(self) -> None:
        if (node := self._any()) is not None:
            for_s = self._chance.choice((1.0, 20.0, 44.0, 50.0, 120.0))
            self._tell("stands still", f"{node.owner} for {for_s:g} s")
            node.process.stop()
            self._later(for_s, lambda: self._world.wake(node))
            await self._traffic.burst()

    async def _cut_off(self) -> None:
        if (node := self._any()) is not None:
            for_s = self._chance.choice((1.0, 20.0, 50.0, 120.0))
            of = self._chance.choice(({"store": True}, {"queue": True}, {"store": True, "queue": True}))
            self._tell("cut off", f"{node.owner} from {' and '.join(of)} for {for_s:g} s")
            node.cut(**of)
            self._later(for_s, lambda: self._reached_again(node))

    def _reached_again(self, node: SimulatedTurnNode) -> None:
        if not node.dead:
            node.process.act(node.heal)

    async def _store_outage(self) -> None:
        for_s = self._chance.choice((0.5, 3.0, 20.0, 70.0))
        self._tell("store outage", f"for {for_s:g} s")
        self._world.store_down(down=True)
        self._later(for_s, lambda: self._world.store_down(down=False))

    async def _broker_outage(self) -> None:
        for_s = self._chance.choice((0.5, 5.0, 30.0, 70.0))
        self._tell("broker outage", f"for {for_s:g} s")
        self._world.store_down(down=True)
        there = self._world.serving()
        for node in there:
            node.cut(queue=True)
        self._later(for_s, lambda: self._world.store_down(down=False))
        for node in there:
            self._later(for_s, partial(self._reached_again, node))

    async def _lost_replies(self) -> None:
        if (node := self._any()) is not None:
            self._tell("lost replies", node.owner)
            for link in self._chance.sample(node.links(), 3):
                self._chance.choice((link.lose_reply, link.lose_reply, link.cut_after_write))()
            node.queue.loses_replies = self._chance.choice((0, 1, 4))
            self._later(self._chance.uniform(1.0, 10.0), lambda: self._reached_again(node))

    async def _late_write(self) -> None:
        if (node := self._any()) is not None:
            link = self._chance.choice(node.links())
            self._tell("late write", node.owner)
            link.withhold()
            self._later(self._chance.uniform(0.1, 60.0), link.deliver)

    async def _pause(self) -> None:
        handle = self._chance.choice(HANDLES)
        stop_running = self._chance.random() < 0.7  # noqa: PLR2004 - more often than not
        self._tell("pause", f"{handle}{', stopping what runs' if stop_running else ''}")
        with suppress(Unavailable):
            await self._world.pause(handle, stop_running=stop_running)
            self._paused.add(handle)
        at_s = self._world.clock.elapsed_s() + self._chance.choice((0.2, 5.0, 40.0))
        self._later_again.append((at_s, partial(self._resume, handle)))

    async def _resume(self, handle: str) -> None:
        if handle in self._paused:
            try:
                await self._world.resume(handle)
            except Unavailable:
                self._later_again.append((self._world.clock.elapsed_s() + 5.0, partial(self._resume, handle)))
            else:
                self._paused.discard(handle)

    async def _no_model(self) -> None:
        for_s = self._chance.choice((5.0, 40.0))
        self._tell("no model answers", f"for {for_s:g} s")
        self._world.outside.model_is_away = True
        self._later(for_s, self._model_again)

    def _model_again(self) -> None:
        self._world.outside.model_is_away = False

    async def _no_threads(self) -> None:
        self._tell("the chat cannot be read")
        self._world.chat.threads.is_away = True
        self._later(30.0, self._threads_again)

    def _threads_again(self) -> None:
        self._world.chat.threads.is_away = False

    async def _ceilings(self) -> None:
        day = self._chance.choice((0, 300, 1500, 6000))
        self._tell("ceilings", str(day))
        scope = self._chance.choice(("company_day", "seat_day"))
        await self._world.apply(company_source(**({scope: day} if day else {})))

    def _any(self) -> SimulatedTurnNode | None:
        there = [node for node in self._world.serving() if not node.process.stands_still and not node.steps_left]
        return self._chance.choice(there) if there else None

    def _later(self, after_s: float, repair: Callable[[], object]) -> None:
        self._repairs.append((self._world.clock.elapsed_s() + after_s, repair))

    def _tell(self, name: str, about: str = "") -> None:
        self.happened[name] += 1
        self.story.append(f"{self._world.clock.elapsed_s():.1f} {name} {about}".rstrip())
