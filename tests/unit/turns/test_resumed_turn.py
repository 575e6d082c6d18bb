"""A turn that is gone on with in another world than it was begun in: other tools, no budget store, another model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.inbox import Decision
from crewlet.llm import AssistantMessage, ModelReply, ModelRequest, ToolResultMessage, UserMessage
from crewlet.tools import Hint
from crewlet.turns.calling import MAY_HAVE_HAPPENED
from crewlet.turns.meter import Spent
from tests.unit.turns.killed_turns import PLAIN, Killed, Process, Scene, World, WorldMeter, born, journal_of, live
from tests.unit.turns.turn_kit import failure

pytestmark = [pytest.mark.virtual_time, pytest.mark.slow]

WITHOUT = replace(PLAIN, without="comment")


def breaks(request: ModelRequest) -> ModelReply:
    raise failure()


BREAKS = replace(PLAIN, executor=[breaks] * len(PLAIN.executor))


class NoStore(WorldMeter):
    """Nobody answers for the budgets."""

    async def charge(self, spent: Spent, check: Callable[[], None]) -> None:
        raise Unavailable("the counters do not answer")


async def steps_of(scene: Scene = PLAIN) -> int:
    process = Process()
    await live(World(), process, scene=scene)
    return process.steps


async def killed_at(step: int, world: World, scene: Scene = PLAIN) -> None:
    with pytest.raises(Killed):
        await live(world, Process(dies_at=step), scene=scene)


def told_of_comments(world: World) -> dict[str, str]:
    """What the executor was told of each of its comments, in the last request that holds both."""
    for request in reversed(world.requests):
        comments = [
            call.id
            for message in request.messages
            if isinstance(message, AssistantMessage)
            for call in message.calls
            if call.name == "comment"
        ]
        results = {each.call_id: each.content for each in request.messages if isinstance(each, ToolResultMessage)}
        if comments:
            return {each: results[each] for each in comments}
    return {}


async def test_what_is_told_of_a_call_is_what_came_of_it_where_its_tool_is_gone() -> None:
    with capture_logs():
        for step in range(1, await steps_of() + 1):
            world = World()
            await killed_at(step, world)
            made = world.comments.total()
            await live(world, Process(), scene=WITHOUT)

            told = [*told_of_comments(world).values()]
            known = told.count("commented") + told.count(MAY_HAVE_HAPPENED)
            assert world.comments.total() == made
            assert told.count("commented") <= made <= known, f"killed at step {step}: {told}"


async def test_a_call_that_was_refused_is_not_made_after_the_fact_by_a_process_that_has_the_tool() -> None:
    with capture_logs():
        for step in range(1, await steps_of(WITHOUT) + 1):
            world = World()
            await killed_at(step, world, WITHOUT)
            await live(world, Process())

            told = [*told_of_comments(world).values()]
            assert told.count("commented") == world.comments.total(), f"killed at step {step}: {told}"


async def test_a_resumed_turn_that_breaks_before_it_is_through_its_record_has_reached_what_that_says() -> None:
    broke = 0
    with capture_logs():
        for step in range(1, await steps_of() + 1):
            world = World()
            await killed_at(step, world)
            acted = world.comments.total()
            world.meter = NoStore
            outcome = await live(world, Process())

            if outcome is not None and not outcome.finished:
                broke += 1
                assert outcome.reached_outside or not acted, f"killed at step {step}"
                assert not any(each.redelivered for each in world.completions.values()) or not acted
    assert broke > 0


async def test_a_turn_that_broke_and_was_killed_before_its_end_was_on_record_still_tells_the_end_it_comes_to() -> None:
    with capture_logs():
        for step in range(1, await steps_of(BREAKS) + 1):
            world = World()
            await killed_at(step, world, BREAKS)
            outcome = await live(world, Process())

            if outcome is not None:
                assert outcome.decision is Decision.DONE
                assert [each.decision for each in world.completions.values()][-1] == "done", f"killed at step {step}"


async def test_a_resumed_turn_that_no_model_answers_has_reached_what_its_record_says() -> None:
    with capture_logs():
        for step in range(1, await steps_of() + 1):
            world = World()
            await killed_at(step, world)
            acted = world.comments.total()
            outcome = await live(world, Process(), scene=BREAKS)

            assert outcome is None or outcome.finished or outcome.reached_outside or not acted, f"killed at {step}"


async def test_a_call_that_is_made_again_has_its_old_place_among_the_calls_of_its_tool() -> None:
    """By its place an ask's channel is known."""
    with capture_logs():
        for step in range(1, await steps_of() + 1):
            world = World()
            with pytest.raises(Killed):
                await live(world, Process(dies_at=step), idempotent=Hint.YES)
            await live(world, Process(), idempotent=Hint.YES)

            assert world.places == {"one": {0}, "two": {1}}, f"killed at step {step}"


async def test_a_journal_that_is_lost_in_mid_turn_costs_the_turn_nothing_and_its_end_is_on_record() -> None:
    with capture_logs():
        for step in range(5, await steps_of() + 1):
            world = World()
            outcome = await live(world, Process(lost_at=step))

            assert outcome is not None
            assert outcome.decision is Decision.DONE, f"lost at step {step}"
            assert world.comments == {"one": 1, "two": 1}
            assert await live(world, Process()) is None, f"lost at step {step}"


async def test_a_turn_that_no_journal_can_hold_runs_on_and_leaves_nothing_to_go_on_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with capture_logs() as logs:
        await steps_of()
        for most in (1_000, 4_000, 12_000):
            monkeypatch.setattr(limits, "LOG_APPEND_MAX_BYTES", most)
            world = World(long_notes="x" * 10_000)
            outcome = await live(world, Process())
            found = await journal_of(world, Process(), born(world)[0]).take_over()

            assert outcome is not None
            assert outcome.decision is Decision.DONE
            assert found.turn is None or found.turn.ended is not None
    assert "turn_unjournalled" in {each["event"] for each in logs}


async def test_a_conversation_of_ten_megabytes_is_gone_on_with_to_the_letter() -> None:
    world = World(long_notes="x" * 10_000_000)
    with capture_logs():
        await killed_at(await steps_of() - 12, world)
        before = _longest(world)
        world.long_notes = ""
        await live(world, Process())

    after = _longest(world)
    assert sum(len(each.content) for each in before.messages if isinstance(each, ToolResultMessage)) > 10_000_000
    assert after.messages[: len(before.messages)] == before.messages
    assert isinstance(after.messages[0], UserMessage)


def _longest(world: World) -> ModelRequest:
    return max(world.requests, key=lambda request: len(request.messages))
