"""What becomes of a delivery once its turn has ended."""

from __future__ import annotations

import pytest

from crewlet.base.ids import TurnId
from crewlet.inbox import Decision, TurnOutcome, Verdict, verdict_of


def _ended(*, finished: bool, reached_outside: bool = False, error_kind: str = "") -> TurnOutcome:
    return TurnOutcome(
        turn_id=TurnId("t1"),
        decision=Decision.DONE if finished else Decision.FAILED,
        finished=finished,
        reached_outside=reached_outside,
        error_kind=error_kind,
    )


def test_a_finished_turn_is_recorded() -> None:
    """Its trigger does not come back, and there is nothing to explain."""
    verdict = verdict_of(_ended(finished=True), headroom=5)

    assert verdict.record
    assert verdict.abandoned == ""


@pytest.mark.spec("S-123")
def test_a_broken_turn_that_reached_nobody_comes_back() -> None:
    """A model that did not answer wrote nothing anywhere; trying again is free of harm."""
    verdict = verdict_of(_ended(finished=False, error_kind="llm_unavailable"), headroom=5)

    assert not verdict.record
    assert verdict.abandoned == ""


@pytest.mark.spec("S-124")
def test_a_broken_turn_that_reached_outside_is_given_up_aloud() -> None:
    """Its calls cannot be taken back and must not be repeated; losing the rest is said."""
    verdict = verdict_of(_ended(finished=False, reached_outside=True), headroom=5)

    assert verdict.record
    assert "reached outside" in verdict.abandoned


def test_the_last_delivery_of_a_broken_turn_is_given_up_aloud() -> None:
    """The queue will dead-letter it; nobody should wonder why no answer came."""
    verdict = verdict_of(_ended(finished=False), headroom=0)

    assert not verdict.record
    assert "dead letter" in verdict.abandoned


def test_a_refusal_is_recorded_and_said() -> None:
    """A model that declined would decline again."""
    verdict = verdict_of(_ended(finished=True, error_kind="refusal"), headroom=5)

    assert verdict.record
    assert "declined" in verdict.abandoned


def test_a_defect_of_the_engine_is_recorded_and_said() -> None:
    """The same code on the same input fails again."""
    verdict = verdict_of(_ended(finished=True, error_kind="unhandled_exception"), headroom=5)

    assert verdict.record
    assert "engine failed" in verdict.abandoned


def test_a_turn_whose_budget_ran_out_is_no_failure() -> None:
    """It is parked, also on its last delivery: whoever parks it says what becomes of it."""
    assert verdict_of(_ended(finished=False, error_kind="budget_exhausted"), headroom=0) == Verdict(
        record=False, parked=True
    )
