"""What follows a reply or a round's calls, decided without doing anything."""

from __future__ import annotations

import pytest

from crewlet.llm import StopReason
from crewlet.turns.round_step import RoundState, Step, after_calls, after_reply
from tests.unit.turns.turn_kit import call, says

FIRST = RoundState(1, 3, 2)
LAST = RoundState(3, 3, 2)


@pytest.mark.parametrize("stop", [StopReason.MAX_TOKENS, StopReason.REFUSAL, StopReason.PAUSED])
def test_a_stop_that_ends_the_phase_outranks_its_calls(stop: StopReason) -> None:
    assert after_reply(says("", call("t"), stop=stop), FIRST) is Step.STOP


@pytest.mark.parametrize("stop", [StopReason.END, StopReason.TOOL_USE])
def test_calls_are_run_whatever_else_the_reply_says(stop: StopReason) -> None:
    assert after_reply(says("words", call("t"), stop=stop), LAST) is Step.CALL_TOOLS


def test_prose_is_corrected_unless_it_is_the_last_round_or_was_twice() -> None:
    assert after_reply(says("words"), FIRST) is Step.CORRECT
    assert after_reply(says("words"), LAST) is Step.RESCUE
    assert after_reply(says("words"), RoundState(2, 9, 2, corrected=2)) is Step.RESCUE


def test_waiting_outranks_submitting_and_both_outrank_the_cap() -> None:
    assert after_calls(LAST, waiting=True, submitted=True) is Step.WAITING
    assert after_calls(LAST, waiting=False, submitted=True) is Step.SUBMITTED
    assert after_calls(LAST, waiting=False, submitted=False) is Step.RESCUE
    assert after_calls(FIRST, waiting=False, submitted=False) is Step.NEXT_ROUND


def test_only_a_correction_counts_up() -> None:
    assert FIRST.next(corrected=True).next(corrected=True).corrected == 2
    assert FIRST.next(corrected=True).next(corrected=False) == RoundState(3, 3, 2)
