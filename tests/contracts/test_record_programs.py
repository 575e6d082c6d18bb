"""One random program on a model, on the twin and on real brokers: clients are told the same of it everywhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryRecordStore
from crewlet.coordination import RecordStore
from crewlet.testing import run_virtual
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.record_model import RecordModel
from crewlet.testing.contracts.record_on_jetstream import ClusterRecords, JetStreamRecords
from crewlet.testing.contracts.record_on_memory import MemoryRecords
from crewlet.testing.contracts.record_program import Step, Told, run_program
from crewlet.testing.saboteurs import RECORD_SABOTEURS, planted_records

IN_FULL = "CREWLET_FULL_PROGRAMS" in os.environ
EXAMPLES = 300
"""As many as the slowest of the saboteurs below needs to be found out."""

EXAMPLES_IN_PASSING = 40
FOUND_OUT = frozenset(
    {
        "AMarkerIsTheAnswer",
        "AbsentCanBeRemovedUnasked",
        "AnswersHoldMarkers",
        "EmptyIsAbsent",
        "EveryCreateOverAMarkerIsDone",
        "EverySecondChangeIsSkipped",
        "FearsTheWorst",
        "FirstSightIsKept",
        "LateWritesExpectNothing",
        "ListsNothingUnasked",
        "OutOfReachIsAbsent",
        "RemovalsAreSilent",
        "RemovesAnything",
        "RevisionsComeBack",
        "StarsAreManyTokens",
        "SweepsAllMarkers",
        "SweepsKeysOutright",
        "ToldAndNotKept",
        "UpdatesOverAnything",
        "UpdatesRevive",
    }
)

CLIENTS = st.integers(0, 1)
KEYS = st.sampled_from(["a.1", "a.2", "a.2.x", "b.1"])
VALUES = st.sampled_from([b"x", b"x", b"y", b""])
BACK = st.sampled_from([0, 0, 0, 1, 2])
UPDATES = st.sampled_from(["update", "update", "lose_update", "withhold_update"])
REMOVALS = st.sampled_from(["delete", "delete", "lose_delete", "withhold_delete"])
LOOK = st.one_of(
    st.builds(Step, st.just("get"), CLIENTS, KEYS),
    st.builds(Step, st.just("list"), CLIENTS, st.sampled_from(["a.>", "a.*", "b.>", "a.2.x", "c.>"])),
    st.builds(Step, st.sampled_from(["last", "watch", "read", "read"]), CLIENTS),
)
WRITE = st.one_of(
    st.builds(Step, st.just("create"), CLIENTS, KEYS, VALUES),
    st.builds(Step, st.just("create"), CLIENTS, KEYS, VALUES),
    st.builds(
        Step, st.sampled_from(["update", "update", "lose_update", "withhold_update"]), CLIENTS, KEYS, VALUES, BACK
    ),
    st.builds(
        Step, st.sampled_from(["delete", "delete", "lose_delete", "withhold_delete"]), CLIENTS, KEYS, st.just(b""), BACK
    ),
)
TROUBLE = st.builds(Step, st.sampled_from(["cut", "mend", "mend", "deliver", "sweep", "sweep", "sweep_none"]), CLIENTS)
AGE = st.just(Step("age"))


def removed(client: int, key: str, sweep: bool) -> list[Step]:
    """A record comes and goes, and perhaps its marker too."""
    gone = [Step("create", client, key, b"x"), Step("delete", client, key)]
    return [*gone, Step("sweep", client)] if sweep else gone


def created_again(client: int, key: str, back: int) -> list[Step]:
    """A removed key is created again, swept, and written to by who remembers an older revision."""
    again = [*removed(client, key, sweep=False), Step("create", 1 - client, key, b"x"), Step("sweep", client)]
    return [*again, Step("update", client, key, b"y", back), Step("get", client, key), Step("list", client, "a.>")]


def watched(client: int, key: str) -> list[Step]:
    """A record is there, changes and goes under a watch."""
    stands = [Step("create", client, key, b"x"), Step("watch", client), Step("read", client)]
    return [
        *stands,
        Step("update", 1 - client, key, b"y"),
        Step("read", client),
        Step("delete", client, key),
        Step("read", client),
    ]


def late(client: int, key: str) -> list[Step]:
    """A write arrives after another has taken its place."""
    begun = [Step("create", client, key, b"x"), Step("withhold_update", client, key, b"y")]
    return [*begun, Step("update", 1 - client, key, b""), Step("deliver", client), Step("get", client, key)]


def out_of_reach(client: int, step: Step) -> list[Step]:
    """Something is asked by who is cut off."""
    return [
        Step("watch", client),
        Step("cut", client),
        replace(step, client=client),
        Step("read", client),
        Step("mend", client),
    ]


MOVES = st.one_of(
    st.builds(removed, CLIENTS, KEYS, st.booleans()),
    st.builds(created_again, CLIENTS, KEYS, st.integers(0, 1)),
    st.builds(watched, CLIENTS, KEYS),
    st.builds(late, CLIENTS, KEYS),
    st.builds(out_of_reach, CLIENTS, st.one_of(LOOK, WRITE, TROUBLE)),
)
STEPS = st.one_of(LOOK, WRITE, WRITE, TROUBLE).map(lambda step: [step])
PROGRAMS = st.lists(st.one_of(STEPS, STEPS, STEPS, MOVES), min_size=3, max_size=20).map(
    lambda moves: [step for move in moves for step in move]
)
AGING_PROGRAMS = st.tuples(PROGRAMS, AGE, PROGRAMS).map(lambda parts: [*parts[0], parts[1], *parts[2]])


def modest(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def told_by_twin(
    program: list[Step], sabotage: Callable[[MemoryRecordStore], RecordStore] = lambda twin: twin
) -> list[Told]:
    async def run() -> list[Told]:
        async with MemoryRecords(sabotage=sabotage) as twin:
            return await run_program(twin, program)

    return run_virtual(run())


def told_by_brokers(program: list[Step], harness: type[JetStreamRecords], cluster: Cluster) -> list[Told]:
    async def run() -> list[Told]:
        async with harness(cluster) as broker:
            return await run_program(broker, program)

    with capture_logs():
        return asyncio.run(run())


@pytest.mark.slow
@modest(EXAMPLES)
@given(program=st.one_of(PROGRAMS, AGING_PROGRAMS))
def test_clients_of_the_twin_are_told_what_the_model_says(program: list[Step]) -> None:
    assert told_by_twin(program) == RecordModel().run(program)


@pytest.mark.slow
@pytest.mark.timeout(1800 if IN_FULL else 120)
@modest(EXAMPLES if IN_FULL else EXAMPLES_IN_PASSING)
@given(program=PROGRAMS)
def test_clients_of_a_broker_are_told_what_the_twins_are(one_broker: Cluster, program: list[Step]) -> None:
    assert told_by_brokers(program, JetStreamRecords, one_broker) == told_by_twin(program)


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.timeout(1800)
@modest(EXAMPLES if IN_FULL else EXAMPLES_IN_PASSING)
@given(program=PROGRAMS)
def test_clients_of_three_members_are_told_what_the_twins_are(three_members: Cluster, program: list[Step]) -> None:
    assert told_by_brokers(program, ClusterRecords, three_members) == told_by_twin(program)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FOUND_OUT))
def test_a_run_is_long_enough_to_find_the_saboteur_out(name: str) -> None:
    saboteur = next(kind for kind in RECORD_SABOTEURS if kind.__name__ == name)

    def differs(program: list[Step]) -> bool:
        return told_by_twin(program) != told_by_twin(program, planted_records(saboteur))

    assert find(PROGRAMS, differs, settings=settings(modest(EXAMPLES), phases=[Phase.generate]))
