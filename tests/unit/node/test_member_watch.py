"""A member of the brokers' cluster that keeps no copies is told of, and started again where that mends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from crewlet.backends.nats import MemberHealth
from crewlet.base.errors import Unavailable
from crewlet.base.fence import ServingPosture
from crewlet.node.member_standing import MemberStanding, MemberState, after_look, after_silence
from crewlet.node.member_watch import MemberPace, MemberWatch
from crewlet.node.node_status import NodeStatusSource
from crewlet.testing import VirtualClock
from crewlet.tools import ServerStatus

OFF = MemberHealth(lacks=("JetStream not enabled (10076)",))
BEHIND = MemberHealth(lacks=("stream A is not current: group node unhealthy",), behind={"A": 7}, others_whole=False)
STUCK = MemberHealth(behind={"A": 7})
WELL = MemberHealth()
PACE = MemberPace(look_every_s=15.0, restarts_max=3, restart_pause_s=120.0)


def test_one_look_that_finds_it_unwell_is_an_election_and_two_are_none() -> None:
    once = after_look(MemberStanding(), OFF)
    twice = after_look(once, MemberHealth(lacks=(*OFF.lacks, "and more")))

    assert once.state is MemberState.HEALTHY
    assert (twice.state, twice.why) == (MemberState.UNHEALTHY, "JetStream not enabled (10076) (and 1 more)")


def test_it_is_healthy_at_the_first_look_that_finds_it_so() -> None:
    assert after_look(after_look(after_look(MemberStanding(), OFF), OFF), WELL) == MemberStanding()


def test_a_member_that_says_nothing_is_unknown_after_three_times_and_neither_well_nor_unwell() -> None:
    standing = MemberStanding()
    states: list[MemberState] = []
    for _ in range(3):
        standing = after_silence(standing, "no answer")
        states.append(standing.state)

    assert states == [MemberState.HEALTHY, MemberState.HEALTHY, MemberState.UNKNOWN]
    assert standing.why == "no answer"


def test_silence_between_two_looks_that_find_it_unwell_does_not_make_it_well() -> None:
    standing = after_look(after_silence(after_look(MemberStanding(), OFF), "no answer"), OFF)

    assert standing.state is MemberState.UNHEALTHY


def test_an_unwell_member_that_falls_silent_is_unknown() -> None:
    standing = after_look(after_look(MemberStanding(), OFF), OFF)
    for _ in range(3):
        standing = after_silence(standing, "no answer")

    assert standing.state is MemberState.UNKNOWN


def test_a_copy_that_comes_nearer_is_a_busy_moment_and_one_that_does_not_is_told_of() -> None:
    catching_up = stands = MemberStanding()
    for lag in (30, 20, 10, 5, 1):
        catching_up = after_look(catching_up, MemberHealth(behind={"A": lag}))
    for lag in (30, 30, 31):
        stands = after_look(stands, MemberHealth(behind={"A": lag}))

    assert catching_up.state is MemberState.HEALTHY
    assert (stands.state, stands.why) == (MemberState.UNHEALTHY, "its copy of A lacks 31 entries")


def test_a_copy_that_came_no_nearer_for_a_minute_needs_a_restart_where_the_others_are_whole() -> None:
    alone = beside_a_broken_one = MemberStanding()
    for _ in range(5):
        alone = after_look(alone, STUCK)
        beside_a_broken_one = after_look(beside_a_broken_one, replace(STUCK, others_whole=False))

    assert (alone.has_stopped, beside_a_broken_one.has_stopped) == (True, False)
    assert beside_a_broken_one.state is MemberState.UNHEALTHY


class Member:
    """A broker whose health a test decides, and the room on its disk.

    ``mended_by`` is the restart that makes it well.
    """

    def __init__(self, directory: Path) -> None:
        self.directory: Path | None = directory
        self.says = WELL
        self.silent = False
        self.room = True
        self.mended_by = 0
        self.restarts = 0

    async def has_room(self) -> bool:
        await asyncio.sleep(0)
        return self.room

    async def health(self) -> MemberHealth:
        await asyncio.sleep(0)
        if self.silent:
            raise Unavailable("no answer")
        return self.says

    async def restart(self) -> None:
        self.restarts += 1
        if self.restarts == self.mended_by:
            self.says = WELL


@dataclass(frozen=True)
class Watched:
    """A member under a watch."""

    member: Member
    watch: MemberWatch


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    member = Member(tmp_path)
    watch = MemberWatch("a", member, VirtualClock(), PACE)
    watch.start()
    yield Watched(member, watch)
    await watch.close()


@pytest.mark.virtual_time
async def test_a_member_that_stores_nothing_is_told_of_once_with_what_to_do_and_so_is_its_end(
    watched: Watched,
) -> None:
    watched.member.room = False
    with capture_logs() as said:
        watched.member.says = OFF
        await asyncio.sleep(300.0)
        trouble = watched.watch.trouble
        watched.member.says = WELL
        await asyncio.sleep(30.0)

    assert [line["event"] for line in said] == ["broker_member_unhealthy", "broker_member_healthy"]
    assert "JetStream not enabled" in trouble
    assert f"{watched.member.directory} has room" in trouble
    assert watched.watch.trouble == ""


@pytest.mark.virtual_time
async def test_a_member_that_does_not_answer_is_told_of_as_unknown(watched: Watched) -> None:
    with capture_logs() as said:
        watched.member.silent = True
        await asyncio.sleep(300.0)
        trouble = watched.watch.trouble
        watched.member.silent = False
        await asyncio.sleep(30.0)

    assert [line["event"] for line in said] == ["broker_member_unknown", "broker_member_healthy"]
    assert "is not known" in trouble
    assert watched.member.restarts == 0


@pytest.mark.virtual_time
async def test_it_is_started_again_once_its_disk_has_room_and_not_before(watched: Watched) -> None:
    watched.member.room, watched.member.mended_by = False, 1
    watched.member.says = OFF
    await asyncio.sleep(600.0)
    before = watched.member.restarts

    watched.member.room = True
    await asyncio.sleep(31.0)

    assert (before, watched.member.restarts) == (0, 1)
    assert watched.watch.standing.state is MemberState.HEALTHY


@pytest.mark.virtual_time
async def test_it_is_started_again_a_few_times_with_time_to_catch_up_and_then_left_to_a_person(
    watched: Watched,
) -> None:
    watched.member.says = OFF
    with capture_logs() as said:
        await asyncio.sleep(3600.0)

    tries = [line for line in said if line["event"] == "broker_member_restarted"]
    assert watched.member.restarts == len(tries) == 3
    assert "then restart this node" in watched.watch.trouble


@pytest.mark.virtual_time
async def test_tries_are_counted_anew_once_it_was_healthy(watched: Watched) -> None:
    for spell in range(2):
        watched.member.says = OFF
        watched.member.mended_by = 2 * (spell + 1)
        await asyncio.sleep(600.0)

    assert watched.member.restarts == 4
    assert watched.watch.trouble == ""


@pytest.mark.virtual_time
async def test_a_restart_has_its_time_before_the_next(watched: Watched) -> None:
    watched.member.says = OFF
    await asyncio.sleep(30.0 + PACE.restart_pause_s - 1.0)
    one = watched.member.restarts
    await asyncio.sleep(20.0)

    assert (one, watched.member.restarts) == (1, 2)


@pytest.mark.virtual_time
async def test_one_that_only_lags_behind_is_told_of_and_let_be(watched: Watched) -> None:
    watched.member.says = BEHIND
    await asyncio.sleep(600.0)

    assert watched.member.restarts == 0
    assert "catches up by itself" in watched.watch.trouble


@pytest.mark.parametrize(
    ("lack", "has_stopped"),
    [
        ("JetStream not enabled (10076)", True),
        ("JetStream stream '$G > A' is not current: node write error: write 2.blk: no space left on device", True),
        ("JetStream stream '$G > A' is not current: group node unhealthy", False),
        ("JetStream has not established contact with a meta leader", False),
    ],
)
def test_what_a_broker_says_when_its_disk_took_nothing_ends_with_a_restart_alone(lack: str, has_stopped: bool) -> None:
    assert MemberHealth(lacks=("something else", lack)).has_stopped is has_stopped


def test_a_node_says_on_its_presence_how_its_member_stands_where_it_has_one() -> None:
    def said(standing: MemberStanding | None) -> dict[str, object]:
        source = NodeStatusSource(
            in_flight=int,
            posture=ServingPosture(),
            tool_servers=list[ServerStatus],
            started_at=datetime(2030, 1, 1, tzinfo=UTC),
            broker="embedded",
            member=lambda: standing,
        )
        return {name: value for name, value in source().items() if name.startswith("member")}

    unknown = MemberStanding(state=MemberState.UNKNOWN, why="no answer")
    assert said(unknown) == {"member": "unknown", "member_error": "no answer"}
    assert said(None) == {}
