"""A company's bad days on the queue's twin, each from one seed; and the days on which something is planted."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from crewlet.testing.saboteurs import QUEUE_SABOTEURS
from crewlet.testing.simulation import Fault, Run, run_plan, shrunk, simulate, told
from crewlet.testing.simulation.faults import SIMULATED_FAULTS, fault_of

SEEDS = range(20)
FAULT_SEEDS = range(20)

# Of the saboteurs of the queue's suite some for each checker; the full simulation plants all of them.
FOUND_SABOTEURS = frozenset(
    {
        "FailuresKeepTheirPlace",
        "DeferralsGoBehind",
        "DeferralsFetchOn",
        "AcksAreLost",
        "PoisonIsDropped",
        "SilenceFails",
        "ReleaseDoesNothing",
        "HoldDoesNothing",
        "DetachIsAQuiesce",
        "CloseDoesNothing",
        "HeadroomCountsDeliveries",
        "NewestConversationFirst",
        "ArrivalDecides",
        "NoCap",
        "OneFailureFailsAll",
        "ListenersAreNotAwaited",
        "FeedsReplay",
        "NodeIsLost",
        "ListsForget",
        "DeletingDetaches",
        "CreatingAgainEmpties",
        "AnswersAreNameless",
        "NobodyIsAnError",
        "NoLinger",
        "HaulsAreSingle",
        "BudgetIsOneShort",
    }
)
FAULTS = (*SIMULATED_FAULTS, *(fault_of(kind) for kind in QUEUE_SABOTEURS if kind.__name__ in FOUND_SABOTEURS))

DIGEST_OF_ONE_SEED = """
import structlog
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
from crewlet.testing.simulation import simulate
print(simulate(7).digest)
"""


@pytest.fixture(autouse=True)
def logs_are_not_rendered() -> Iterator[None]:
    with capture_logs():
        yield


@functools.cache
def day(seed: int) -> Run:
    return simulate(seed)


def first_found(fault: Fault) -> Run | None:
    runs = (simulate(seed, fault) for seed in FAULT_SEEDS)
    return next((run for run in runs if run.finding is not None), None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_rule_of_the_queue_is_broken_on_a_bad_day(seed: int) -> None:
    run = day(seed)

    assert run.finding is None, told(shrunk(run))


@pytest.mark.slow
def test_the_days_are_bad_enough() -> None:
    happened: Counter[str] = Counter()

    for seed in SEEDS:
        happened += day(seed).counts

    never = {
        "publishes", "repeats", "calls", "buried", "releases", "crash", "return", "cut", "heal", "unavailable",
        "answers_ack", "answers_nak", "answers_raise", "answers_defer", "answers_hang", "answers_silent",
        "answers_cancel", "hold", "lift", "quiesce", "unquiesce", "detach", "at_work_twice_after_the_ack_clock",
        "tell", "listen", "feed", "look", "make", "remove", "serve", "ask", "wait", "change",
    } - happened.keys()  # fmt: skip
    assert never == set()


@pytest.mark.slow
def test_one_seed_is_one_day() -> None:
    first, second, another = day(7), simulate(7), day(8)

    assert (first.digest, first.lines, first.counts) == (second.digest, second.lines, second.counts)
    assert first.digest != another.digest


@pytest.mark.slow
def test_one_seed_is_the_same_day_in_every_process() -> None:
    here = day(7).digest

    elsewhere = [
        subprocess.run(
            [sys.executable, "-c", DIGEST_OF_ONE_SEED],
            env={"PYTHONHASHSEED": hashes},
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        ).stdout.strip()
        for hashes in ("1", "2")
    ]

    assert elsewhere == [here, here]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "_"))
def test_a_planted_fault_is_found(fault: Fault) -> None:
    run = first_found(fault)

    assert run is not None
    assert day(run.plan.seed).finding is None


def test_every_saboteur_that_is_to_be_found_exists() -> None:
    assert FOUND_SABOTEURS - {kind.__name__ for kind in QUEUE_SABOTEURS} == set()


@pytest.mark.slow
def test_a_broken_rule_is_told_with_its_seed_in_few_steps_that_break_it_again() -> None:
    fault = SIMULATED_FAULTS[0]
    run = first_found(fault)
    assert run is not None
    assert run.finding is not None

    small = shrunk(run, fault)
    again = run_plan(small.plan, fault)

    assert small.finding is not None
    assert small.finding.rule == run.finding.rule
    assert len(small.plan.steps) <= len(run.plan.steps) // 4
    assert (small.digest, small.finding) == (again.digest, again.finding)
    assert f"seed {run.plan.seed}" in told(small)
    assert small.finding.what in told(small)
