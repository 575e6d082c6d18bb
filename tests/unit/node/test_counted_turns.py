"""What turns charge is what their models said, whenever the process of one dies."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from zoneinfo import ZoneInfo

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.coordination import BUDGETS, COMPANY_SCOPE, UNCAPPED, Budgets, Record, Revision, agent_scope, windows_at
from crewlet.node.seat_budget import SeatBudget
from crewlet.node.turn_meter import TurnMeter
from crewlet.testing import VirtualClock
from crewlet.turns import Meter, Spent
from tests.unit.turns.killed_turns import Killed, Process, World, live
from tests.unit.turns.turn_kit import USAGE

pytestmark = pytest.mark.virtual_time

REPLIES = 5
LOST = 0.7
SEEDS = 30
UTC = ZoneInfo("UTC")


class KillableStore(MemoryRecordStore):
    """One process's way to the counters, a step before and after each write."""

    process: Process

    async def create(self, key: str, value: bytes) -> Record:
        self.process.step()
        written = await super().create(key, value)
        self.process.step()
        return written

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        self.process.step()
        written = await super().update(key, value, expected=expected)
        self.process.step()
        return written


class KillableMeter:
    """A real meter; a process that died in it does nothing more."""

    def __init__(self, meter: Meter, process: Process) -> None:
        self._meter = meter
        self._process = process

    async def remaining(self) -> int | None:
        return None

    async def admit(self) -> None:
        self._process.step()
        await self._meter.admit()

    async def charge(self, spent: Spent, check: Callable[[], None]) -> None:
        self._process.step()
        await self._meter.charge(spent, check)
        self._process.step()


class Counters:
    """What outlives the processes, and the counters that each of them had."""

    def __init__(self, chance: Random | None = None) -> None:
        self.clock = VirtualClock()
        self._chance = chance
        self.bucket = MemoryBucket(BUDGETS, self.clock)
        self._opened: list[Budgets] = []

    def meter(self, world: World, process: Process) -> Meter:
        store = KillableStore(self.bucket)
        store.process = process
        if self._chance is not None and self._chance.random() < LOST:
            store.link.lose_reply()
        budgets = Budgets(store, Random(world.epoch))
        self._opened.append(budgets)
        budget = SeatBudget(agent_id="agent-1", zone=UTC, company=UNCAPPED, seat=UNCAPPED)
        return KillableMeter(TurnMeter(budgets, budget, self.clock, lambda _: None), process)

    async def read(self) -> list[int]:
        """The company's day and the seat's."""
        budgets, windows = Budgets(MemoryRecordStore(self.bucket), Random(1)), windows_at(self.clock.now(), UTC)
        return [(await budgets.spent(scope, windows)).day.used for scope in (COMPANY_SCOPE, agent_scope("agent-1"))]

    async def close(self) -> None:
        for budgets in self._opened:
            await budgets.close()


async def lived(*died_at: int, chance: Random | None = None) -> tuple[list[int], int]:
    """A turn through processes that die at these steps and a last one that does not: the counters, and its steps.

    By ``chance`` the store loses its answer to the first write of a process.
    """
    counters = Counters(chance)
    world = World(meter=counters.meter)
    for step in died_at:
        with pytest.raises(Killed):
            await live(world, Process(dies_at=step))
    last = Process()
    await live(world, last)
    counted = await counters.read()
    await counters.close()
    return counted, last.steps


@pytest.mark.slow
async def test_the_counters_are_the_sum_of_the_recorded_replies_wherever_a_process_died() -> None:
    whole, steps = await lived()
    said = REPLIES * USAGE.total

    with capture_logs():
        counted = {step: (await lived(step))[0] for step in range(1, steps + 1)}

    assert whole == [said, said]
    assert {step: each for step, each in counted.items() if each != [said, said]} == {}


@pytest.mark.slow
async def test_the_counters_are_the_sum_of_the_recorded_replies_through_two_deaths_and_lost_answers() -> None:
    _, steps = await lived()
    said = REPLIES * USAGE.total
    counted: dict[int, list[int]] = {}

    with capture_logs():
        for seed in range(SEEDS):
            chance = Random(seed)
            # A later process has less to do: its death must come before its end.
            died_at = (chance.randrange(2, steps), chance.randrange(2, 9))
            counted[seed], _ = await lived(*died_at, chance=chance)

    assert {seed: each for seed, each in counted.items() if each != [said, said]} == {}
