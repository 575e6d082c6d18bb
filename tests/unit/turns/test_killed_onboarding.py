"""A turn that begins with an onboarding, killed between any two of its steps: it goes on by the same path."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryRecordStore
from crewlet.coordination import OnboardingMark, Onboardings
from crewlet.inbox import Decision
from crewlet.testing import VirtualClock
from tests.unit.turns.killed_turns import CUT_OFF, NEW, PLACE, Killed, Process, Scene, World, live

pytestmark = [pytest.mark.virtual_time, pytest.mark.slow]

REPLIES = {"new": 3 + 4 + 1, "cut off": 1 + 4 + 1}
"""The onboarding's, the executor's and the reviewer's."""
SCENES = {"new": NEW, "cut off": CUT_OFF}
MARKED = {"new": PLACE, "cut off": ""}
PHASES = ["onboarding", "execute", "review"]


async def steps_of_a_whole_turn(scene: Scene) -> int:
    process = Process()
    outcome = await live(World(), process, scene=scene)
    assert outcome is not None
    assert outcome.decision is Decision.DONE
    return process.steps


async def lived_and_died(scene: Scene, *deaths: int) -> World:
    world = World()
    for step in deaths:
        try:
            await live(world, Process(dies_at=step), scene=scene)
        except Killed:
            continue
        return world
    await live(world, Process(), scene=scene)
    return world


async def mark_of(world: World) -> OnboardingMark:
    mark = await Onboardings(MemoryRecordStore(world.marks), VirtualClock()).get("agent-1")
    assert mark is not None
    return mark


def require_whole(world: World, name: str, when: str) -> None:
    """One turn, done once, each phase once, each reply counted once by its number, no call outside made twice."""
    assert [each.decision for each in world.completions.values()] == ["done"], when
    assert sorted(each.phase for each in world.phases.values()) == sorted(PHASES), when
    assert sorted(number for _, number in world.charges) == [*range(1, REPLIES[name] + 1)], when
    assert len({lane for lane, _ in world.charges}) == 1, when
    assert max([*world.comments.values(), *world.searches.values()]) == 1, when


@pytest.mark.parametrize("name", SCENES)
async def test_killed_anywhere_it_goes_through_its_onboarding_and_its_work_once(name: str) -> None:
    with capture_logs():
        for step in range(1, await steps_of_a_whole_turn(SCENES[name]) + 1):
            world = await lived_and_died(SCENES[name], step)

            require_whole(world, name, f"killed at step {step}")
            assert world.model_calls <= REPLIES[name] + 1, f"killed at step {step}"
            mark = await mark_of(world)
            assert (mark.chain_hash, mark.claimed_by) == (MARKED[name], ""), f"killed at step {step}"


async def test_killed_twice_it_still_goes_through_both_once() -> None:
    with capture_logs():
        for first in range(1, await steps_of_a_whole_turn(NEW) + 1, 5):
            for second in range(1, 70, 9):
                world = await lived_and_died(NEW, first, second)

                require_whole(world, "new", f"killed at {first}, then at {second}")


async def test_a_turn_that_follows_is_not_onboarded_again() -> None:
    world = await lived_and_died(NEW)
    fresh = World(marks=world.marks, epoch=world.epoch)

    await live(fresh, Process(), scene=NEW)

    assert sorted(each.phase for each in fresh.phases.values()) == ["execute", "review"]
