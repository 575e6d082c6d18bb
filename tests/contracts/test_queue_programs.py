"""One random program on the twin and on a real broker: handlers see the same of it on both."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryQueue
from crewlet.queue import EventQueue
from crewlet.testing import run_virtual
from crewlet.testing.clusters import Cluster
from crewlet.testing.contracts.queue_on_jetstream import ClusterHarness, JetStreamHarness
from crewlet.testing.contracts.queue_on_memory import MemoryHarness
from crewlet.testing.contracts.queue_program import PROGRAM_CONFIG, Answer, Seen, Step, follow, record
from crewlet.testing.saboteurs import QUEUE_SABOTEURS, planted

IN_FULL = "CREWLET_FULL_PROGRAMS" in os.environ
EXAMPLES = 250
"""What a run in full takes: as many as the slowest of the saboteurs below needs to be found out."""

EXAMPLES_IN_PASSING = 10
FOUND_OUT = frozenset(
    {
        "DeferralsGoBehind",
        "FailuresAreForgotten",
        "FailuresKeepTheirPlace",
        "FetchesAhead",
        "HeadroomIsForgotten",
        "HoldsAreNameless",
        "HoldsOutliveADetach",
        "KeysAreIgnored",
        "LastDeferralsAreDropped",
        "NewestConversationFirst",
        "PoisonIsDropped",
        "QuiesceDoesNothing",
        "ReleaseDoesNothing",
        "UnquiesceLifts",
    }
)

TALKS = st.sampled_from(["a", "b"])
CLIENTS = st.integers(0, 1)


def published(*answers: Answer) -> st.SearchStrategy[list[Step]]:
    """Some mail that is answered so or acknowledged, or one message that is never acknowledged."""
    mail = st.builds(
        Step, st.just("publish"), CLIENTS, TALKS, st.lists(st.sampled_from(answers), max_size=3).map(tuple)
    )
    poison = st.builds(Step, st.just("publish"), CLIENTS, TALKS, st.just(answers[:1] * 4))
    return st.one_of(st.lists(mail, min_size=1, max_size=4), st.lists(poison, min_size=1, max_size=1))


ATTACH = st.builds(Step, st.sampled_from(["attach", "attach", "attach_batch"]), CLIENTS)
LET_GO = st.builds(Step, st.sampled_from(["detach", "quiesce", "unquiesce", "unquiesce"]), CLIENTS)
HOLD = st.builds(Step, st.sampled_from(["hold", "lift"]), CLIENTS, st.sampled_from(["pause", "sandbox"]))


def taken_over(client: int) -> list[Step]:
    """One client dies at work and the other goes on."""
    at_work = [Step("attach", client), Step("publish", client, "a", ("hang",))]
    return [*at_work, Step("crash", client), Step("unquiesce", 1 - client), Step("attach", 1 - client)]


def held_twice(client: int, lifted: str) -> list[Step]:
    """Mail comes under two holds, of which one is lifted."""
    holds = [Step("hold", client, "pause"), Step("hold", client, "sandbox")]
    return [*holds, Step("attach", client), Step("publish", client, "a"), Step("lift", client, lifted)]


def attached_again(client: int) -> list[Step]:
    """A client lets go, and comes back to what was sent meanwhile."""
    return [Step("detach", client), Step("publish", client, "b"), Step("attach", client)]


def hauled(client: int) -> list[Step]:
    """What waits for a client is a haul of two conversations."""
    mail = [Step("publish", client, talk) for talk in ("a", "b", "a")]
    return [Step("detach", 0), Step("detach", 1), *mail, Step("attach_batch", client)]


def quiesced(client: int) -> list[Step]:
    """Mail comes while a client that is attached fetches nothing."""
    return [Step("attach", client), Step("quiesce", client), Step("publish", client, "a"), Step("publish", client, "b")]


MOVES = st.one_of(
    CLIENTS.map(quiesced),
    CLIENTS.map(hauled),
    st.one_of(ATTACH, LET_GO, HOLD).map(lambda step: [step]),
    CLIENTS.map(lambda client: [Step("unquiesce", client)] * 3),
    CLIENTS.map(taken_over),
    CLIENTS.map(attached_again),
    st.builds(held_twice, CLIENTS, st.sampled_from(["pause", "sandbox"])),
)
PROGRAMS = st.one_of(
    st.lists(st.one_of(published("nak", "raise", "ack", "hang"), MOVES), min_size=2, max_size=9),
    st.lists(st.one_of(published("defer", "ack", "hang"), MOVES), min_size=2, max_size=9),
).map(lambda moves: [step for move in moves for step in move])


def modest(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if IN_FULL else [])],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def recorded(program: list[Step], sabotage: Callable[[MemoryQueue], EventQueue] = lambda twin: twin) -> list[Seen]:
    async def run() -> list[Seen]:
        async with MemoryHarness(PROGRAM_CONFIG, sabotage=sabotage) as twin:
            return await record(twin, program)

    # A program's faults are many, and each would be told with its traceback.
    with capture_logs():
        return run_virtual(run())


def followed(program: list[Step], harness: type[JetStreamHarness], cluster: Cluster) -> None:
    async def run() -> None:
        async with harness(cluster, PROGRAM_CONFIG) as broker:
            await follow(broker, program, expected)

    expected = recorded(program)
    with capture_logs():
        asyncio.run(run())


@pytest.mark.slow
@pytest.mark.timeout(1800 if IN_FULL else 120)
@modest(EXAMPLES if IN_FULL else EXAMPLES_IN_PASSING)
@given(program=PROGRAMS)
def test_handlers_see_the_same_on_the_twin_and_on_a_broker(one_broker: Cluster, program: list[Step]) -> None:
    followed(program, JetStreamHarness, one_broker)


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.timeout(1800)
@modest(EXAMPLES if IN_FULL else EXAMPLES_IN_PASSING)
@given(program=PROGRAMS)
def test_handlers_see_the_same_on_the_twin_and_on_three_members(three_members: Cluster, program: list[Step]) -> None:
    followed(program, ClusterHarness, three_members)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FOUND_OUT))
def test_a_run_in_full_is_long_enough_to_find_the_saboteur_out(name: str) -> None:
    sabotage = planted(next(kind for kind in QUEUE_SABOTEURS if kind.__name__ == name))

    def differs(program: list[Step]) -> bool:
        return recorded(program) != recorded(program, sabotage)

    assert find(PROGRAMS, differs, settings=settings(modest(EXAMPLES), phases=[Phase.generate]))
