"""The jobs of maintenance: each has its turn, on one node for the fleet; a node's own tables are its own business."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.base.errors import CrewletError, Fenced, Unavailable
from crewlet.base.fence import Fence, OpenFence
from crewlet.coordination import SLOTS, RecordStore, swept_slots
from crewlet.duties import MAINTENANCE, Chore, Job, JobsFailed, each_job, maintenance, marker_job
from tests.unit.duties.rig import Fleet, elapsed_s

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    fleet = Fleet()
    yield fleet
    await fleet.close()


class Jobs:
    """Jobs that keep that they ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def job(self, name: str, failure: BaseException | None = None, *, lasts_s: float = 0.0) -> Job:
        async def run(_: Fence) -> None:
            self.ran.append(name)
            await asyncio.sleep(lasts_s)
            if failure is not None:
                raise failure

        return Job(name, run)


class Swept(MemoryRecordStore):
    """A bucket's client that keeps when it was swept, and whose word it is that nothing is swept."""

    def __init__(self, bucket: MemoryBucket) -> None:
        super().__init__(bucket)
        self.swept_s: list[float] = []

    async def purge_markers(self, *, before: datetime) -> int:
        self.swept_s.append(elapsed_s())
        return await super().purge_markers(before=before)


@pytest.mark.parametrize(
    "failure", [CrewletError("no"), Unavailable("away"), KeyError("a defect"), asyncio.CancelledError()]
)
async def test_a_job_that_fails_keeps_no_other_from_its_turn_and_is_named_at_the_end(failure: BaseException) -> None:
    jobs = Jobs()
    work = each_job([jobs.job("first"), jobs.job("second", failure), jobs.job("third")])

    with pytest.raises(JobsFailed) as caught:
        await work(OpenFence())

    assert jobs.ran == ["first", "second", "third"]
    assert caught.value.names == ("second",)


async def test_a_job_that_hangs_keeps_the_others_from_their_turn_for_its_bound_alone() -> None:
    jobs = Jobs()
    work = each_job([jobs.job("hangs", lasts_s=1e6), jobs.job("second")])

    with pytest.raises(JobsFailed, match="hangs: not done within 600 s"):
        await work(OpenFence())

    assert jobs.ran == ["hangs", "second"]
    assert elapsed_s() == pytest.approx(limits.MAINTENANCE_JOB_MAX_S)


async def test_a_job_that_finds_the_duty_gone_ends_the_tick() -> None:
    jobs = Jobs()

    with pytest.raises(Fenced):
        await each_job([jobs.job("first", Fenced("a peer's")), jobs.job("second")])(OpenFence())

    assert jobs.ran == ["first"]


@pytest.mark.spec("C-147")
async def test_markers_are_swept_once_a_tick_by_the_node_that_has_the_duty(fleet: Fleet) -> None:
    buckets = {slot.name: MemoryBucket(slot, fleet.clock) for slot in SLOTS}
    clients: dict[str, dict[str, Swept]] = {}
    for name in ("a", "b", "c"):
        node, clients[name] = fleet.node(name), {slot: Swept(bucket) for slot, bucket in buckets.items()}
        stores: dict[str, RecordStore] = {**clients[name]}
        job = marker_job(stores, fleet.clock)
        assert job.name == "coordination_markers"
        node.runner.start([maintenance([job])])

    await asyncio.sleep(4 * MAINTENANCE.every_s - 1)

    ageless = {slot.name for slot in swept_slots()}
    swept = {slot: store.swept_s for slot, store in clients["a"].items() if store.swept_s}
    assert swept.keys() == ageless
    assert MAINTENANCE.every_s == 15 * 60.0
    for times in swept.values():
        assert times == pytest.approx([n * MAINTENANCE.every_s for n in range(4)], abs=1)
    assert [store.swept_s for name in ("b", "c") for store in clients[name].values() if store.swept_s] == []


async def test_a_bucket_that_cannot_be_swept_is_named_and_the_others_are_swept(fleet: Fleet) -> None:
    stores = {slot.name: Swept(MemoryBucket(slot, fleet.clock)) for slot in SLOTS}
    stores["channels"].link.cut = True

    with pytest.raises(Unavailable, match="not swept: channels"):
        await marker_job({**stores}, fleet.clock).run(OpenFence())

    assert all(stores[slot.name].swept_s for slot in swept_slots())


async def test_a_chore_runs_on_every_node_whoever_has_the_duties(fleet: Fleet) -> None:
    ran: list[str] = []

    def chore(name: str) -> Chore:
        async def work() -> None:
            ran.append(name)

        return Chore(name="own-tables", every_s=MAINTENANCE.every_s, work=work)

    for name in ("a", "b", "c"):
        fleet.node(name, roles=("seats",) if name == "c" else ("workers",)).runner.start([], [chore(name)])

    await asyncio.sleep(2 * MAINTENANCE.every_s - 1)

    assert sorted(ran) == ["a", "a", "b", "b", "c", "c"]


async def test_a_chore_that_fails_or_hangs_is_told_and_tried_again(fleet: Fleet) -> None:
    outcomes = ["fails", "hangs", "works"]

    async def work() -> None:
        outcome = outcomes.pop(0)
        if outcome == "fails":
            raise Unavailable("the disk is full")
        if outcome == "hangs":
            await asyncio.sleep(1e6)

    node = fleet.node("a")
    node.runner.start([], [Chore(name="own", every_s=60.0, work=work)])
    await asyncio.sleep(1)
    first = node.runner.problems()
    await asyncio.sleep(66 + 60)
    second = node.runner.problems()
    await asyncio.sleep(70)

    assert first == ("own failed once here: the disk is full",)
    assert second == ("own failed 2 times here: own: not done within 60 s",)
    assert node.runner.problems() == ()


def test_the_times_of_channels_are_fixed() -> None:
    assert timedelta(seconds=limits.CHANNEL_IDLE_MAX_S) == timedelta(hours=1)
    assert timedelta(seconds=limits.CHANNEL_CLOSED_KEPT_S) == timedelta(days=7)
