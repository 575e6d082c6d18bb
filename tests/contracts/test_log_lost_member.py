"""The member that leads the journal is killed, or stands still while another takes its place: nothing lands twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from crewlet import topics
from crewlet.backends.nats import JetStream, JetStreamLog
from crewlet.backends.nats.streams import Streams
from crewlet.queue import Log, LogRecord, QueueConfig, Superseded, Tail
from crewlet.testing.clusters import Cluster, running_cluster
from crewlet.testing.ids import SeededIds
from crewlet.testing.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(120)]

SEAT = "ada"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster(3) as cluster:
        yield cluster


class Fleet:
    """Clients of the journal on the members of a cluster."""

    def __init__(self, cluster: Cluster, stack: AsyncExitStack) -> None:
        self.cluster = cluster
        self._stack = stack
        self._count = 0

    async def api(self, member: int | None = None) -> JetStream:
        self._count += 1
        connection = await self.cluster.connect(f"client{self._count}", member=member)
        self._stack.push_async_callback(connection.close)
        return JetStream(connection)

    async def log(self, member: int | None = None) -> Log:
        log = JetStreamLog(await self.api(member), ids=SeededIds(self._count))
        self._stack.callback(log.close)
        return log

    async def leader(self, api: JetStream) -> int:
        return int((await self.cluster.leader(api, topics.STREAM_JOURNAL)).removeprefix("member"))


@pytest.fixture
async def fleet(cluster: Cluster) -> AsyncIterator[Fleet]:
    async with AsyncExitStack() as stack:
        fleet = Fleet(cluster, stack)
        await Streams(await fleet.api(), QueueConfig(replicas=3), "file").provision()
        yield fleet


def one(name: str) -> list[LogRecord]:
    return [LogRecord(name, b"x" * 100)]


async def test_appends_go_on_while_the_member_that_led_is_gone_and_after_it_is_back(fleet: Fleet) -> None:
    log, reader, names = await fleet.log(), await fleet.log(), [f"r{number}" for number in range(300)]
    leader = await fleet.leader(await fleet.api())

    at = 0
    for number, name in enumerate(names):
        if number == 100:
            await fleet.cluster.kill(leader)
        if number == 200:
            fleet.cluster.start(leader)
            await fleet.cluster.wait_ready()
        at = await log.append(SEAT, one(name), expected=at)

    assert [record.id for record in await reader.read(SEAT)] == names


async def test_a_predecessor_on_a_member_that_stood_still_adds_nothing_more(fleet: Fleet) -> None:
    api = await fleet.api()
    leader = await fleet.leader(api)
    predecessor, successor = await fleet.log(leader), await fleet.log((leader + 1) % 3)
    beside = await fleet.api((leader + 1) % 3)
    first = await predecessor.append(SEAT, one("opened"), expected=0)
    assert await successor.tail(SEAT) == Tail(first, "opened")

    fleet.cluster.pause(leader)

    async def moved() -> bool:
        return await fleet.cluster.leader(beside, topics.STREAM_JOURNAL) not in ("", f"member{leader}")

    await wait_until(moved, what="another leader", timeout_s=60.0)
    second = await successor.append(SEAT, one("resumed"), expected=first)
    found = await successor.read(SEAT)
    fleet.cluster.resume(leader)
    with pytest.raises(Superseded) as refused:
        await predecessor.append(SEAT, one("late"), expected=first)

    assert [record.id for record in found] == ["opened", "resumed"]
    assert refused.value.tail == Tail(second, "resumed")
    assert [record.id for record in await successor.read(SEAT)] == ["opened", "resumed"]
