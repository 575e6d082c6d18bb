"""One member of three whose disk takes nothing: told of while the others serve, and whole again once there is room."""

from __future__ import annotations

import resource
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from crewlet.backends.nats import JetStream
from crewlet.backends.nats.cluster_waits import behind
from crewlet.backends.nats.jetstream_types import ApiError, StreamConfig
from crewlet.base.clock import SystemClock
from crewlet.base.errors import Unavailable
from crewlet.base.ids import RandomIds
from crewlet.node.embedded_member import EmbeddedMember
from crewlet.node.member_standing import MemberState
from crewlet.node.member_watch import MemberPace, MemberWatch
from crewlet.testing.members import Member, member_configs, running_members
from crewlet.testing.waiting import wait_until
from tests.broker.small_disks import small_disk

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(180)]

KEPT = StreamConfig(name="KEPT", subjects=["kept.>"], storage="file", num_replicas=3)
PACE = MemberPace(look_every_s=0.5, restart_pause_s=60.0)
MESSAGE = bytes(100_000)
MESSAGES = 200
"""Together more than the small disk has."""


@dataclass
class Watched:
    """Three members, of which the last one is watched, and the way in through the first."""

    members: list[Member]
    api: JetStream
    watch: MemberWatch

    @property
    def restarts(self) -> int:
        return self.members[-1].broker.restarts

    async def publish(self, count: int) -> None:
        """So many messages, each of them again until it is taken: the full member may have led the stream."""
        for number in range(count):
            await self._take(number)

    async def _take(self, number: int) -> None:
        async def is_taken() -> bool:
            try:
                await self.api.publish(f"kept.{number}", MESSAGE, message_id=str(number))
            except (ApiError, Unavailable):
                return False
            return True

        await wait_until(is_taken, what=f"message {number} taken", timeout_s=20)

    async def stands(self, state: MemberState) -> None:
        await wait_until(lambda: self.watch.standing.state is state, what=f"a member that is {state}", timeout_s=30)

    async def lag(self) -> int:
        """How many entries the last member lacks, as the leaders know."""
        return sum(behind(await self.api.stream_infos(), self.members[-1].name).values())


@asynccontextmanager
async def watched(folder: Path) -> AsyncGenerator[Watched]:
    async with running_members(member_configs(folder)) as members:
        api = JetStream(members[0].connection, peers_wait_s=30.0)
        await api.stream_create(KEPT)
        last = members[-1]
        own_api = JetStream(last.connection)
        member = EmbeddedMember(last.broker, own_api, last.name, RandomIds(), room_min_bytes=8 * 1024 * 1024)
        watch = MemberWatch(last.name, member, SystemClock(), PACE)
        watch.start()
        try:
            yield Watched(members, api, watch)
        finally:
            await watch.close()


async def test_a_member_whose_disk_is_full_is_told_of_and_whole_again_once_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "member-2", megabytes=16) as disk, capture_logs() as said:
        async with watched(tmp_path) as fleet:
            await fleet.publish(MESSAGES)
            await fleet.stands(MemberState.UNHEALTHY)
            trouble, without_room = fleet.watch.trouble, fleet.restarts

            disk.enlarge(128)
            await fleet.stands(MemberState.HEALTHY)
            with_room, lag = fleet.restarts, await fleet.lag()
            info = await fleet.api.stream_info(KEPT.name)

    told = [line["event"] for line in said if line["event"].startswith("broker_member")]
    assert told == ["broker_member_unhealthy", "broker_member_restarted", "broker_member_healthy"]
    assert f"the disk of {disk.folder} has room" in trouble
    assert (without_room, with_room, lag) == (0, 1, 0)
    assert info is not None
    assert info.state.messages == MESSAGES


@pytest.mark.skipif(sys.platform != "linux", reason="another process's limits are set on Linux alone")
async def test_a_member_of_which_one_stream_takes_nothing_is_told_of_and_started_again(tmp_path: Path) -> None:
    """Its broker serves on and says no word of it: the part of this one stream has stopped for good."""
    async with watched(tmp_path) as fleet:
        pid = fleet.members[-1].broker.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1024 * 1024, resource.RLIM_INFINITY))
        with capture_logs() as said:
            await fleet.publish(MESSAGES // 4)
            await wait_until(lambda: fleet.restarts == 1, what="another broker", timeout_s=30)
            await fleet.stands(MemberState.HEALTHY)
        lag = await fleet.lag()

    told = [line for line in said if line["event"] == "broker_member_unhealthy"]
    assert "write error" in str(told[0]["reason"])
    assert lag == 0


async def test_a_member_that_only_waits_for_others_is_told_of_and_left_alone(tmp_path: Path) -> None:
    async with watched(tmp_path) as fleet:
        for other in fleet.members[:2]:
            await other.kill()
        await fleet.stands(MemberState.UNHEALTHY)
        trouble, restarts = fleet.watch.trouble, fleet.restarts

    assert restarts == 0
    assert "catches up by itself" in trouble
