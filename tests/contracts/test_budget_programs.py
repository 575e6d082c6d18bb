"""Random programs of charges, crashes and wrong clocks: what stands is what a model says, on every backend."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from crewlet.base.errors import CrewletError
from crewlet.coordination import Budgets, Ceilings
from crewlet.testing import VirtualDeadlock, run_virtual
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.budget_program import BudgetStep, Fault, follow_budgets
from crewlet.testing.contracts.budgets import BudgetRig
from crewlet.testing.contracts.record_on_jetstream import ClusterRecords, JetStreamRecords
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from crewlet.testing.saboteurs import BUDGET_SABOTEURS

IN_FULL = "CREWLET_FULL_PROGRAMS" in os.environ
EXAMPLES = 2000 if IN_FULL else 150
EXAMPLES_ON_BROKERS = 100 if IN_FULL else 5
FOUND_OUT = (
    "ARefusalClearsTheOtherMarks",
    "ChargesCountAgain",
    "CompletionsCountWhereTheyBegan",
    "LanesGoWithTheirWindow",
    "LanesHaveNoNumbers",
    "MarksGoBack",
    "MarksOutliveTheirWindow",
    "MarksStay",
    "MarksTurnWindowsOver",
    "MarksAreJudgedByMemory",
    "OutagesAdmit",
    "RefusedSpendIsNotCounted",
    "SlotsGoBack",
    "TheCompanysRecordSpeaksForBoth",
    "TheCompanysShareIsTakenBack",
    "WhatJustFitsIsRefused",
    "WindowsNeverTurnOver",
)

CAPS = st.one_of(st.none(), st.integers(0, 40))
CEILINGS = st.builds(Ceilings, day=CAPS, week=CAPS, month=CAPS)
PROCESSES, LANES = st.integers(0, 1), st.sampled_from(["a", "b", "b/worker"])
SECONDS = st.sampled_from([0, 1, 12, 3600, 86_400, 9 * 86_400])
CHARGES = st.builds(
    BudgetStep,
    what=st.just("charge"),
    process=PROCESSES,
    lane=LANES,
    tokens=st.integers(0, 20),
    company=CEILINGS,
    seat=CEILINGS,
    fault=st.one_of(st.just("none"), st.sampled_from(get_args(Fault))),
    seconds=SECONDS,
)
OTHERS = st.one_of(
    st.builds(BudgetStep, what=st.just("again"), process=PROCESSES, lane=LANES),
    st.builds(BudgetStep, what=st.just("refuse"), process=PROCESSES, company=CEILINGS, seat=CEILINGS),
    st.builds(BudgetStep, what=st.just("pass"), seconds=SECONDS),
    st.builds(BudgetStep, what=st.just("skew"), process=PROCESSES, seconds=st.sampled_from([-7200, -15, 0, 15])),
)


def turned_over(charge: BudgetStep, other: BudgetStep) -> list[BudgetStep]:
    """A charge is asked for again behind a boundary that another one crossed first."""
    return [
        replace(charge, lane="a"),
        BudgetStep(what="pass", seconds=86_400),
        replace(other, lane="b"),
        BudgetStep(what="again", process=other.process, lane="a"),
    ]


MOVES = st.one_of(
    CHARGES.map(lambda step: [step]), OTHERS.map(lambda step: [step]), st.builds(turned_over, CHARGES, CHARGES)
)
PROGRAMS = st.lists(MOVES, min_size=1, max_size=9).map(lambda moves: [step for move in moves for step in move])


def modest(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if IN_FULL else [])],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def on_the_twin(program: list[BudgetStep], kind: type[Budgets] = Budgets) -> None:
    async def run() -> None:
        async with MemoryRecords() as records:
            rig = BudgetRig(records, kind)
            try:
                await follow_budgets(rig, program)
            finally:
                await rig.close()

    with capture_logs():
        run_virtual(run())


def on_a_broker(program: list[BudgetStep], records: JetStreamRecords) -> None:
    async def run() -> None:
        async with records:
            rig = BudgetRig(records)
            try:
                await follow_budgets(rig, program)
            finally:
                await rig.close()

    with capture_logs():
        asyncio.run(run())


@pytest.mark.slow
@pytest.mark.timeout(1800 if IN_FULL else 120)
@modest(EXAMPLES)
@given(program=PROGRAMS)
def test_what_stands_is_what_the_model_says_on_the_twin(program: list[BudgetStep]) -> None:
    on_the_twin(program)


@pytest.mark.slow
@pytest.mark.timeout(1800 if IN_FULL else 240)
@modest(EXAMPLES_ON_BROKERS)
@given(program=PROGRAMS)
def test_what_stands_is_what_the_model_says_on_one_broker(one_broker: Cluster, program: list[BudgetStep]) -> None:
    on_a_broker(program, JetStreamRecords(one_broker))


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.timeout(1800)
@modest(EXAMPLES_ON_BROKERS)
@given(program=PROGRAMS)
def test_what_stands_is_what_the_model_says_on_three_members(three_members: Cluster, program: list[BudgetStep]) -> None:
    on_a_broker(program, ClusterRecords(three_members))


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND_OUT)
def test_the_model_finds_the_saboteur_out(name: str) -> None:
    kind = next(kind for kind in BUDGET_SABOTEURS if kind.__name__ == name)

    def differs(program: list[BudgetStep]) -> bool:
        try:
            on_the_twin(program, kind)
        except (AssertionError, TimeoutError, VirtualDeadlock, CrewletError):
            return True
        return False

    assert find(PROGRAMS, differs, settings=settings(modest(600), phases=[Phase.generate]))
