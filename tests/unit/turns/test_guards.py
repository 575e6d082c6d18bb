"""Guards: what ends a turn however its model would go on."""

from __future__ import annotations

import pytest

from crewlet.events.types import TurnGuardBreach
from crewlet.inbox import Decision
from crewlet.turns import TurnConfig
from tests.unit.turns.turn_kit import PlayedModel, Stage, reviews, submits, trigger_from

pytestmark = pytest.mark.virtual_time


def again(notes: str = "once more") -> PlayedModel:
    return PlayedModel(*[reviews("self_iterate", notes=notes)] * 5)


async def test_the_third_return_is_the_last() -> None:
    stage = Stage(executor=PlayedModel(*[submits(f"try {n}") for n in range(5)]), reviewer=again())

    outcome = await stage.run()

    assert (outcome.decision, outcome.finished, outcome.error_kind) == (Decision.FAILED, True, "max_iter")
    assert stage.only(TurnGuardBreach).kind == "max_iter"
    assert (stage.completed.iterations, stage.completed.redelivered, outcome.artifact) == (3, False, "try 2")


async def test_the_same_result_sent_back_twice_is_a_stall() -> None:
    stage = Stage(executor=PlayedModel(*[submits("the same")] * 5), reviewer=again())

    outcome = await stage.run()

    assert (outcome.finished, outcome.error_kind) == (True, "stall")
    assert stage.only(TurnGuardBreach).turn_id == outcome.turn_id
    assert stage.completed.iterations == 2


async def test_going_back_and_forth_between_two_results_is_a_stall_too() -> None:
    tries = PlayedModel(submits("a"), submits("b"), submits("a"))
    stage = Stage(executor=tries, reviewer=again(), config=TurnConfig(max_iterations=9))

    outcome = await stage.run()

    assert (outcome.error_kind, stage.completed.iterations) == ("stall", 3)


async def test_an_ask_that_is_too_deep_runs_no_phase() -> None:
    stage = Stage(executor=PlayedModel(), reviewer=PlayedModel())

    outcome = await stage.run(trigger_from(depth=3))

    assert (outcome.decision, outcome.finished, outcome.error_kind) == (Decision.FAILED, True, "depth_cap")
    assert stage.types == ["agent_turn_started", "turn.guard_breach", "agent_turn_completed"]


async def test_one_below_the_depth_limit_runs() -> None:
    outcome = await Stage().run(trigger_from(depth=2))

    assert outcome.decision is Decision.DONE
