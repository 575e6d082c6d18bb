"""A turn with all that a turn can have, killed between any two steps: workers, a judge, a gate, an answer by tool."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from crewlet.inbox import Decision
from tests.unit.turns.killed_turns import UNJUDGED, WHOLE, Killed, Process, Scene, World, live

pytestmark = [pytest.mark.virtual_time, pytest.mark.slow]

REPLIES = 5 + 1 + 1 + 6
"""The executor's, the judge's, the reviewer's and the workers'."""
AT_ONCE = 2


async def lived_and_died(step: int, scene: Scene = WHOLE) -> World:
    world = World()
    with pytest.raises(Killed):
        await live(world, Process(dies_at=step), scene=scene)
    await live(world, Process(), scene=scene)
    return world


async def steps_of_a_whole_turn(scene: Scene = WHOLE) -> int:
    process = Process()
    outcome = await live(World(), process, scene=scene)
    assert outcome is not None
    assert outcome.decision is Decision.DONE
    return process.steps


async def test_a_whole_turn_plays_all_of_its_parts() -> None:
    world = World()

    await live(world, Process(), scene=WHOLE)

    (completed,) = world.completions.values()
    assert (completed.decision, completed.iterations, completed.artifact) == ("done", 1, "it is there")
    assert (completed.subagent_count, world.model_calls, len(world.charges)) == (3, REPLIES, REPLIES)
    assert {lane.partition("/")[2] for lane, _ in world.charges} == {"", "x", "y", "z"}
    assert (dict(world.comments), dict(world.searches)) == ({"one": 1}, {"x": 1, "y": 1})


async def test_killed_anywhere_it_ends_done_once_and_no_call_outside_is_made_twice() -> None:
    with capture_logs():
        for step in range(1, await steps_of_a_whole_turn() + 1):
            world = await lived_and_died(step)

            completed = [*world.completions.values()]
            assert [each.decision for each in completed] == ["done"], f"killed at step {step}"
            assert max([*world.comments.values(), *world.searches.values()]) == 1, f"killed at step {step}"


async def test_killed_anywhere_each_reply_is_charged_once_and_only_those_under_way_are_asked_for_again() -> None:
    with capture_logs():
        for step in range(1, await steps_of_a_whole_turn() + 1):
            world = await lived_and_died(step)

            assert len(world.charges) == REPLIES, f"killed at step {step}"
            assert world.model_calls <= REPLIES + AT_ONCE, f"killed at step {step}"


async def test_killed_twice_it_still_ends_done_with_no_call_made_twice() -> None:
    with capture_logs():
        for first in range(1, await steps_of_a_whole_turn() + 1, 9):
            for second in range(1, 80, 13):
                world = World()
                with pytest.raises(Killed):
                    await live(world, Process(dies_at=first), scene=WHOLE)
                try:
                    await live(world, Process(dies_at=second), scene=WHOLE)
                except Killed:
                    await live(world, Process(), scene=WHOLE)

                assert {each.decision for each in world.completions.values()} == {"done"}, f"{first}, then {second}"
                assert max([*world.comments.values(), *world.searches.values()]) == 1, f"{first}, then {second}"
                assert len(world.charges) == REPLIES, f"{first}, then {second}"


async def test_a_judge_that_did_not_answer_is_not_asked_again_by_the_process_that_goes_on() -> None:
    with capture_logs():
        for step in range(1, await steps_of_a_whole_turn(UNJUDGED) + 1):
            world = await lived_and_died(step, UNJUDGED)

            (completed,) = world.completions.values()
            assert (completed.decision, completed.artifact) == ("done", "second"), f"killed at step {step}"
            assert world.model_calls <= 5 + 1, f"killed at step {step}"
            assert len({number for _, number in world.charges}) <= 5, f"killed at step {step}"
