"""A turn that outlives its process: killed between any two steps, it goes on where it was."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from crewlet.inbox import Decision
from crewlet.llm import ToolResultMessage
from crewlet.tools import Hint
from crewlet.turns.calling import MAY_HAVE_HAPPENED
from tests.unit.turns.killed_turns import Killed, Process, World, live

pytestmark = pytest.mark.virtual_time

REPLIES = 5


async def steps_of_a_whole_turn() -> int:
    process = Process()
    outcome = await live(World(), process)
    assert outcome is not None
    assert outcome.decision is Decision.DONE
    return process.steps


def told(world: World) -> list[ToolResultMessage]:
    return [each for request in world.requests for each in request.messages if isinstance(each, ToolResultMessage)]


async def killed_at(step: int, world: World, *, idempotent: Hint = Hint.UNKNOWN) -> None:
    with pytest.raises(Killed):
        await live(world, Process(dies_at=step), idempotent=idempotent)


async def test_killed_anywhere_it_ends_done_under_the_same_id_and_no_call_outside_is_made_twice() -> None:
    with capture_logs():
        for step in range(1, await steps_of_a_whole_turn() + 1):
            world = World()
            await killed_at(step, world)
            await live(world, Process())

            completed = [*world.completions.values()]
            assert max(world.comments.values()) == 1, f"killed at step {step}"
            assert {each.decision for each in completed} == {"done"}, f"killed at step {step}"
            assert len({each.turn_id for each in completed}) == 1, f"killed at step {step}"
            assert len(world.completions) == 1, f"killed at step {step}"


async def test_killed_anywhere_each_phase_is_on_record_once_with_all_that_it_cost() -> None:
    with capture_logs():
        for step in range(1, await steps_of_a_whole_turn() + 1):
            world = World()
            await killed_at(step, world)
            await live(world, Process())

            phases = [(each.phase, each.iteration) for each in world.phases.values()]
            assert len(phases) == len(set(phases)), f"killed at step {step}: {phases}"


async def test_killed_anywhere_each_recorded_reply_is_charged_once_and_only_the_one_under_way_is_asked_for_again() -> (
    None
):
    with capture_logs():
        for step in range(1, await steps_of_a_whole_turn() + 1):
            world = World()
            await killed_at(step, world)
            await live(world, Process())

            lanes = {lane for lane, _ in world.charges}
            assert len(world.charges) == REPLIES, f"killed at step {step}"
            assert len(lanes) == 1, f"killed at step {step}"
            assert world.model_calls <= REPLIES + 1, f"killed at step {step}"


async def test_a_call_that_the_kill_may_have_cut_short_is_told_to_the_model_and_not_made_again() -> None:
    lost, made = 0, 0
    with capture_logs():
        for step in range(1, await steps_of_a_whole_turn() + 1):
            world = World()
            await killed_at(step, world)
            await live(world, Process())
            lost += sum(count == 0 for count in (world.comments["one"], world.comments["two"]))
            made += world.comments.total()

    assert lost > 0
    assert made > lost


async def test_a_call_whose_outcome_is_on_record_is_told_as_it_came_out() -> None:
    with capture_logs():
        for step in range(1, await steps_of_a_whole_turn() + 1):
            world = World()
            await killed_at(step, world)
            await live(world, Process())

            doubted = [message for message in told(world) if message.content == MAY_HAVE_HAPPENED]
            assert len({message.call_id for message in doubted}) <= 1, f"killed at step {step}"


async def test_what_a_model_was_shown_before_the_kill_it_is_shown_again_to_the_letter() -> None:
    with capture_logs():
        for step in range(1, await steps_of_a_whole_turn() + 1):
            world = World()
            await killed_at(step, world)
            await live(world, Process())

            openings = {each.messages[0] for each in world.requests if each.tools and len(each.messages) > 1}
            assert len(openings) == 1, f"killed at step {step}"


async def test_a_turn_that_has_ended_is_not_run_again() -> None:
    world = World()
    await live(world, Process())
    asked = world.model_calls

    assert await live(world, Process()) is None
    assert world.model_calls == asked


async def test_an_idempotent_call_is_made_again_where_nobody_knows_what_it_came_to() -> None:
    with capture_logs():
        for step in range(1, await steps_of_a_whole_turn() + 1):
            world = World()
            await killed_at(step, world, idempotent=Hint.YES)
            await live(world, Process(), idempotent=Hint.YES)

            assert min(world.comments["one"], world.comments["two"]) >= 1, f"killed at step {step}"


async def test_killed_twice_at_any_two_steps_it_still_ends_done_with_no_call_made_twice() -> None:
    with capture_logs():
        for first in range(1, await steps_of_a_whole_turn() + 1, 4):
            for second in range(1, 40, 6):
                world = World()
                await killed_at(first, world)
                try:
                    await live(world, Process(dies_at=second))
                except Killed:
                    await live(world, Process())

                assert max(world.comments.values()) == 1, f"killed at {first}, then at {second}"
                assert {each.decision for each in world.completions.values()} == {"done"}
