"""What each seat is doing, as the events of this process tell it."""

from __future__ import annotations

import pytest

from crewlet.events import Body
from crewlet.events.types import (
    AgentTurnCompleted,
    AgentTurnStarted,
    LlmUnavailable,
    OrgStarted,
    TurnBudgetExhausted,
    TurnGuardBreach,
)
from crewlet.node.seat_activity import SeatActivities, SeatActivity
from tests.unit.node.chains import Chain

START = AgentTurnStarted(turn_id="t1", agent_handle="ceo")
DONE = AgentTurnCompleted(turn_id="t1", agent_handle="ceo", decision="done")
FAILED = AgentTurnCompleted(turn_id="t1", agent_handle="ceo", decision="failed", failed=True, error="no answer")
NO_MODEL = LlmUnavailable(turn_id="t1", agent_handle="ceo", error="429")


async def after(*bodies: Body) -> SeatActivity:
    activities, chain = SeatActivities(), Chain()
    for body in bodies:
        chain.tells(body)
        await activities.listen(f"crewlet.events.{body.event_type}", chain.events[-1])
    return activities.of("ceo")


async def test_a_seat_of_which_nothing_is_known_is_idle() -> None:
    assert (await after()).word == "idle"
    assert (await after(OrgStarted(company="Acme"))).word == "idle"


async def test_a_seat_works_while_its_turn_runs() -> None:
    now = await after(START)

    assert (now.word, now.turn_id, now.last_turn_id) == ("working", "t1", None)


async def test_a_seat_is_idle_after_its_turn() -> None:
    now = await after(START, DONE)

    assert (now.word, now.turn_id, now.last_turn_id, now.last_error) == ("idle", None, "t1", None)


async def test_anothers_turn_is_not_the_seats() -> None:
    assert (await after(AgentTurnStarted(turn_id="t1", agent_handle="cto"))).word == "idle"


async def test_a_failed_turn_leaves_its_error() -> None:
    now = await after(START, FAILED)

    assert (now.word, now.last_error) == ("idle", "no answer")


@pytest.mark.spec("E-137")
@pytest.mark.parametrize("kind", ["stall", "max_iter", "depth_cap", "repeated_call", "unhandled_exception"])
async def test_a_guard_that_ended_a_turn_is_its_error_and_no_stop_of_the_seat(kind: str) -> None:
    breach = TurnGuardBreach(turn_id="t1", agent_handle="ceo", kind=kind, detail="as it was")
    end = AgentTurnCompleted(turn_id="t1", agent_handle="ceo", decision="failed", failed=True, error="as it was")

    at_once, later = await after(START, breach), await after(START, breach, end)

    assert (at_once.last_error, later.last_error) == (f"{kind}: as it was", "as it was")
    assert (later.word, later.provider_down) == ("idle", False)


@pytest.mark.spec("E-136")
async def test_a_budget_that_ended_a_turn_is_its_error_and_no_stop_of_the_seat() -> None:
    spent = TurnBudgetExhausted(turn_id="t1", agent_handle="ceo", scope="org", period="day", error="no token is left")

    now = await after(START, spent)

    assert (now.last_error, now.provider_down) == ("no token is left", False)


@pytest.mark.spec("E-138")
async def test_a_seat_that_no_model_answers_is_stopped_until_one_does() -> None:
    down = await after(START, NO_MODEL, FAILED)
    working = await after(START, NO_MODEL, FAILED, START)
    mended = await after(START, NO_MODEL, FAILED, START, DONE)

    assert (down.word, working.word) == ("stopped", "working")
    assert (mended.word, mended.last_error) == ("idle", None)


@pytest.mark.parametrize(
    "end",
    [
        AgentTurnCompleted(turn_id="t1", agent_handle="ceo", decision="stopped", stopped=True),
        AgentTurnCompleted(turn_id="t1", agent_handle="ceo", redelivered=True, error_kind="fenced"),
    ],
)
async def test_a_turn_that_was_stopped_or_moved_says_nothing_of_the_models(end: AgentTurnCompleted) -> None:
    assert (await after(START, NO_MODEL, FAILED, START, end)).word == "stopped"


async def test_a_turn_of_an_earlier_tenure_that_ends_late_does_not_hide_the_running_one() -> None:
    now = await after(START, AgentTurnStarted(turn_id="t2", agent_handle="ceo"), DONE)

    assert (now.word, now.turn_id) == ("working", "t2")
