"""One random program on the log's twin and on real brokers: clients are told the same of it everywhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryLog
from crewlet.queue import Log
from crewlet.testing import run_virtual
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.log_on_jetstream import ClusterLogs, JetStreamLogs
from crewlet.testing.contracts.log_on_memory import MemoryLogs
from crewlet.testing.contracts.log_program import Step, Told, run_program
from crewlet.testing.saboteurs import LOG_SABOTEURS, planted_logs

IN_FULL = "CREWLET_FULL_PROGRAMS" in os.environ
EXAMPLES_IN_FULL = 300
EXAMPLES_IN_PASSING = 30
FOUND_OUT = frozenset(
    {
        "BeginningsHinder",
        "EndsAreRecords",
        "ExpectsAnything",
        "GarbageIsNothing",
        "PurgesAll",
        "ReadsBeginAt",
        "RecordsAreAddedOneByOne",
        "RefusalsNameNothing",
        "TailsNameTheFirst",
        "TrimsBeginnings",
        "TrimsOneMore",
        "TrimsWhatHasNoEnd",
    }
)

CLIENTS, SEATS = st.integers(0, 1), st.sampled_from([0, 0, 0, 1])
BACK = st.sampled_from([0, 0, 0, 1, 2])
SIZES = st.sampled_from([(1,), (1,), (0, 5), (2500,), (900, 900, 900)])
APPENDS = st.builds(
    Step,
    st.sampled_from(["append", "append", "append", "lose_append", "withhold_append"]),
    CLIENTS,
    SEATS,
    st.sampled_from([0, 0, 0, 0, 1]),
    SIZES,
)
LOOKS = st.builds(Step, st.sampled_from(["tail", "read", "read"]), CLIENTS, SEATS, BACK)
WHOLE = st.builds(Step, st.just("read"), CLIENTS, SEATS, st.just(99))
REMOVALS = st.builds(Step, st.sampled_from(["trim", "trim", "trim", "purge"]), CLIENTS, SEATS, BACK)
REMAINS = st.builds(
    Step,
    st.just("leave"),
    CLIENTS,
    SEATS,
    fragment=st.sampled_from(["beginning", "beginning", "end", "garbage", "unreadable"]),
)
TROUBLE = st.builds(Step, st.sampled_from(["cut", "mend", "mend", "deliver", "deliver", "lose"]), CLIENTS, SEATS)
STEPS = st.one_of(APPENDS, APPENDS, APPENDS, LOOKS, WHOLE, REMOVALS, REMAINS, TROUBLE)
PROGRAMS = st.lists(STEPS, min_size=4, max_size=25)


def modest(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def told_by_twin(program: list[Step], sabotage: Callable[[MemoryLog], Log] = lambda twin: twin) -> list[Told]:
    async def run() -> list[Told]:
        async with MemoryLogs(sabotage=sabotage) as twin:
            return await run_program(twin, program)

    return run_virtual(run())


def told_by_brokers(program: list[Step], harness: type[JetStreamLogs], cluster: Cluster) -> list[Told]:
    async def run() -> list[Told]:
        async with harness(cluster) as broker:
            return await run_program(broker, program)

    with capture_logs():
        return asyncio.run(run())


@pytest.mark.slow
@pytest.mark.timeout(1800 if IN_FULL else 120)
@modest(EXAMPLES_IN_FULL if IN_FULL else EXAMPLES_IN_PASSING)
@given(program=PROGRAMS)
def test_clients_of_a_broker_are_told_what_the_twins_are(one_broker: Cluster, program: list[Step]) -> None:
    assert told_by_brokers(program, JetStreamLogs, one_broker) == told_by_twin(program)


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.timeout(1800)
@modest(EXAMPLES_IN_FULL if IN_FULL else EXAMPLES_IN_PASSING)
@given(program=PROGRAMS)
def test_clients_of_three_members_are_told_what_the_twins_are(three_members: Cluster, program: list[Step]) -> None:
    assert told_by_brokers(program, ClusterLogs, three_members) == told_by_twin(program)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FOUND_OUT))
def test_a_program_tells_a_saboteur_from_the_twin(name: str) -> None:
    saboteur = next(kind for kind in LOG_SABOTEURS if kind.__name__ == name)

    def is_found_out(program: list[Step]) -> bool:
        with capture_logs():
            return told_by_twin(program, planted_logs(saboteur)) != told_by_twin(program)

    find(PROGRAMS, is_found_out, settings=settings(modest(1000), phases=[Phase.generate]))
