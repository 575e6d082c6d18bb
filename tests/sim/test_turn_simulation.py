"""A company's bad days, each from one seed, and planted faults that the rules of turns have to find."""

from __future__ import annotations

import pytest

from crewlet.testing.turn_simulation import RULES, TURN_FAULTS, TurnFault, simulate_turns

SEEDS = range(20)
SHOWN_WITHIN = {
    "the ledger is not written": 1,
    "a failed call has no result": 1,
    "a call's outcome breaks the turn": 1,
    "buried mail is nobody's": 8,
}
"""How many days it may take."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_rule_is_broken_on_a_bad_day(seed: int) -> None:
    run = simulate_turns(seed)

    assert run.findings == []
    assert run.happened["replies"] > run.triggers


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [fault for fault in TURN_FAULTS if fault.name in SHOWN_WITHIN], ids=lambda fault: fault.name
)
def test_a_planted_fault_is_found_by_its_rule(fault: TurnFault) -> None:
    runs = (simulate_turns(seed, fault=fault) for seed in range(SHOWN_WITHIN[fault.name]))

    assert any({finding.rule for finding in run.findings} & {*fault.rules} for run in runs)


def test_each_rule_has_a_fault_that_it_has_to_find() -> None:
    assert {rule for fault in TURN_FAULTS for rule in fault.rules} == {*RULES}


@pytest.mark.slow
def test_one_seed_is_one_day() -> None:
    one, other = simulate_turns(3), simulate_turns(3)

    assert (one.story, one.happened, one.virtual_s) == (other.story, other.happened, other.virtual_s)
