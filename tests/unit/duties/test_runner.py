"""Duties are claimed per tick, by one node at a time, and move with their nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryLeases, MemoryRecordStore
from crewlet.base import limits
from crewlet.base.errors import CrewletError, Fenced
from crewlet.base.fence import Fence
from crewlet.coordination import Lease, Record
from crewlet.duties import Chore, Duty, DutyRunner
from tests.unit.coordination.lease_rig import SleepyClock
from tests.unit.duties.rig import TIMES, Fleet, elapsed_s

pytestmark = pytest.mark.virtual_time

EVERY_S, TTL_S = TIMES.every_s, TIMES.ttl_s


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    fleet = Fleet()
    yield fleet
    await fleet.close()
    assert fleet.work.doubled == []


@pytest.mark.spec("S-177")
async def test_one_node_has_a_duty_and_keeps_it_from_tick_to_tick(fleet: Fleet) -> None:
    for name in ("a", "b"):
        fleet.started(name)

    await asyncio.sleep(10 * EVERY_S - 1)

    assert fleet.work.nodes() == ["a"] * 10
    assert [at_s for _, at_s in fleet.work.begun] == pytest.approx([n * EVERY_S for n in range(10)], abs=0.5)


async def test_the_first_tick_comes_at_once(fleet: Fleet) -> None:
    fleet.started("a")

    await asyncio.sleep(0.1)

    assert fleet.work.nodes() == ["a"]
    assert fleet.nodes[0].status().running_for_s == pytest.approx(0.1, abs=0.01)


async def test_a_tenure_is_renewed_rather_than_claimed_again(fleet: Fleet) -> None:
    node = fleet.started("a")

    await asyncio.sleep(5 * EVERY_S)

    lease = await node.process.leases.holder(TIMES.resource)
    assert lease is not None
    assert (lease.epoch, lease.owner, lease.preferred) == (1, node.process.owner, "a")


@pytest.mark.spec("S-178")
async def test_a_node_that_stops_gives_its_duties_back_and_a_peer_takes_them_on_its_next_tick(fleet: Fleet) -> None:
    first = fleet.started("a")
    await asyncio.sleep(EVERY_S / 2)
    fleet.started("b")
    await asyncio.sleep(EVERY_S)

    with capture_logs() as logs:
        await first.runner.stop()
    stopped_s = elapsed_s()
    await asyncio.sleep(EVERY_S + 1)

    assert [(line["event"], line["duty"]) for line in logs] == [("duty_released", "audit")]
    assert fleet.work.nodes()[-1] == "b"
    assert fleet.work.begun[-1][1] - stopped_s <= EVERY_S
    assert not first.status().held


@pytest.mark.spec("S-177")
async def test_a_node_that_dies_keeps_its_duty_until_the_claim_lapses_and_no_longer_than_a_tick_more(
    fleet: Fleet,
) -> None:
    first = fleet.started("a")
    await asyncio.sleep(EVERY_S / 2)
    fleet.started("b")

    await fleet.killed(first)
    await asyncio.sleep(TTL_S + EVERY_S)

    assert fleet.work.nodes()[:2] == ["a", "b"]
    assert TTL_S <= fleet.work.begun[1][1] <= TTL_S + EVERY_S


@pytest.mark.spec("S-190")
async def test_an_outage_of_the_store_skips_the_ticks_on_every_node(fleet: Fleet) -> None:
    nodes = [fleet.started(name) for name in ("a", "b")]
    await asyncio.sleep(EVERY_S / 2)
    for bucket in fleet.rig.buckets:
        bucket.cut = True

    await asyncio.sleep(5 * EVERY_S)
    during = fleet.work.nodes()
    for bucket in fleet.rig.buckets:
        bucket.cut = False
    await asyncio.sleep(EVERY_S)

    assert during == ["a"]
    assert len(fleet.work.begun) == 2
    assert [node.status().failures for node in nodes] == [0, 0]


async def test_a_short_outage_moves_nothing(fleet: Fleet) -> None:
    first = fleet.started("a")
    fleet.started("b")
    await asyncio.sleep(EVERY_S / 2)
    first.cut(off=True)
    await asyncio.sleep(EVERY_S)
    first.cut(off=False)

    await asyncio.sleep(EVERY_S)

    assert fleet.work.nodes() == ["a", "a"]


async def test_a_node_that_is_cut_off_at_work_is_stopped_before_a_peer_begins(fleet: Fleet) -> None:
    fleet.work.lasts_s = 10 * TTL_S
    first = fleet.started("a")
    fleet.started("b")
    await asyncio.sleep(1)
    first.cut(off=True)

    await asyncio.sleep(TTL_S + EVERY_S)

    assert fleet.work.nodes()[:2] == ["a", "b"]
    assert first.status().failures == 1


async def test_a_node_without_the_role_claims_nothing_and_does_its_own_chores(fleet: Fleet) -> None:
    chores: list[float] = []

    async def chore() -> None:
        chores.append(elapsed_s())

    node = fleet.started("a", roles=("seats", "data"), chores=[Chore(name="own", every_s=EVERY_S, work=chore)])

    await asyncio.sleep(3 * EVERY_S - 1)

    assert fleet.work.begun == []
    assert await node.process.leases.held("worker") == []
    assert chores == pytest.approx([0, EVERY_S, 2 * EVERY_S])
    assert [each.name for each in node.runner.status()] == ["own"]


async def test_a_duty_that_fails_is_told_and_given_to_a_peer_by_its_next_tick(fleet: Fleet) -> None:
    first = fleet.started("a")
    fleet.work.failing["a"] = CrewletError("no way to do it here")
    second = fleet.started("b")

    await asyncio.sleep(1)
    told = first.runner.problems()
    await asyncio.sleep(2 * EVERY_S)

    assert told == ("audit failed once here: no way to do it here",)
    # Both tick at the same moments: the one that failed lets the other go first.
    assert fleet.work.nodes()[:3] == ["a", "b", "b"]
    assert second.status().held
    assert first.runner.problems() == ()


async def test_a_duty_that_fails_right_after_its_claim_does_not_go_dark_for_its_claims_time(fleet: Fleet) -> None:
    fleet.work.failing["a"] = KeyError("a defect")
    node = fleet.started("a")

    await asyncio.sleep(1)

    assert await node.process.leases.holder(TIMES.resource) is None
    assert node.status().failures == 1
    assert "a defect" in node.status().error


async def test_a_loop_does_not_die_of_what_its_work_waited_for(fleet: Fleet) -> None:
    fleet.work.failing["a"] = asyncio.CancelledError()
    node = fleet.started("a")
    await asyncio.sleep(1)
    told = node.runner.problems()
    fleet.work.failing.clear()

    await asyncio.sleep(2 * EVERY_S)

    assert told == ("audit failed once here: what it waited for was cancelled",)
    assert node.runner.problems() == ()
    assert node.status().worked_at is not None


async def test_a_loop_that_has_ended_all_the_same_is_told_of(fleet: Fleet) -> None:
    node = fleet.started("a")
    await asyncio.sleep(1)
    for task in asyncio.all_tasks():
        if task.get_name() == "duties:audit":
            task.cancel()

    await asyncio.sleep(1)

    assert node.runner.problems() == ("audit is not done here any more: its loop has ended",)


async def test_a_duty_that_goes_on_failing_is_tried_again_and_its_failures_counted(fleet: Fleet) -> None:
    fleet.work.failing["a"] = CrewletError("still no way")
    node = fleet.started("a")
    await asyncio.sleep(3 * EVERY_S)
    failures = node.status().failures

    fleet.work.failing.clear()
    await asyncio.sleep(2 * EVERY_S)

    assert failures == 3
    assert (node.status().failures, node.status().error, node.runner.problems()) == (0, "", ())
    assert node.status().worked_at is not None


async def test_work_that_outlasts_its_claim_is_stopped_before_it_ends_and_the_duty_given_back(fleet: Fleet) -> None:
    fleet.work.lasts_s = 10 * TTL_S
    node = fleet.started("a")

    await asyncio.sleep(TTL_S - 1)

    assert await node.process.leases.holder(TIMES.resource) is None
    assert fleet.work.at_work == set()
    assert node.runner.problems() == (f"audit failed once here: audit: stopped, its claim of {TTL_S:g} s ends",)


async def test_work_that_cannot_be_stopped_is_told_of_and_its_claim_lapses(fleet: Fleet) -> None:
    fleet.work.lasts_s, fleet.work.stubborn = 3 * TTL_S, True
    node = fleet.started("a")

    await asyncio.sleep(TTL_S + 1)

    assert node.runner.problems() == (f"audit has been at work for {TTL_S + 1:.0f} s and does not end",)
    assert await node.process.leases.holder(TIMES.resource) is None
    await asyncio.sleep(3 * TTL_S)


async def test_the_fence_of_a_tick_closes_with_its_claim_on_a_clock_that_counts_sleep(fleet: Fleet) -> None:
    fleet.started("a")
    await asyncio.sleep(0.5)
    fence = fleet.work.fences[0]
    fence.check()

    fleet.clock.slept_s += TTL_S

    with pytest.raises(Fenced):
        fence.check()
    assert fence.epoch == 1


@pytest.mark.spec("S-178")
async def test_a_stop_lets_a_short_tick_end(fleet: Fleet) -> None:
    fleet.work.lasts_s = limits.DUTY_LAST_TICK_MAX_S - 1
    node = fleet.started("a")
    await asyncio.sleep(0.1)

    await node.runner.stop()

    assert len(fleet.work.ended) == 1
    assert await node.process.leases.holder(TIMES.resource) is None


async def test_a_stop_cancels_a_long_tick_and_gives_its_duty_back(fleet: Fleet) -> None:
    fleet.work.lasts_s = 100.0
    node = fleet.started("a")
    await asyncio.sleep(0.1)

    await node.runner.stop()

    assert elapsed_s() == pytest.approx(limits.DUTY_LAST_TICK_MAX_S, abs=0.5)
    assert fleet.work.ended == []
    assert fleet.work.at_work == set()
    assert await node.process.leases.holder(TIMES.resource) is None


async def test_a_tick_that_ignores_its_end_holds_no_stop_up_and_keeps_its_claim(fleet: Fleet) -> None:
    fleet.work.lasts_s, fleet.work.stubborn = 100.0, True
    node = fleet.started("a")
    await asyncio.sleep(0.1)

    await node.runner.stop()

    assert elapsed_s() <= limits.DUTY_LAST_TICK_MAX_S + limits.DUTY_CANCELLED_MAX_S + 0.5
    assert await node.process.leases.holder(TIMES.resource) is not None
    await asyncio.sleep(100.0)


async def test_a_stop_leaves_no_task_and_can_be_repeated(fleet: Fleet) -> None:
    node = fleet.started("a", chores=[Chore(name="own", every_s=EVERY_S, work=_nothing)])
    await asyncio.sleep(EVERY_S / 2)

    await node.runner.stop()
    await node.runner.stop()
    await fleet.rig.stack.aclose()

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_stop_with_the_store_away_ends_all_the_same(fleet: Fleet) -> None:
    node = fleet.started("a")
    await asyncio.sleep(EVERY_S / 2)
    for store in node.process.stores:
        store.link.silent = True

    await node.runner.stop()

    assert elapsed_s() <= EVERY_S / 2 + limits.DUTY_GIVE_BACK_MAX_S + 0.5


async def test_a_node_that_withholds_claims_nothing_and_a_peer_goes_on_once_its_claim_lapsed(fleet: Fleet) -> None:
    reason: list[str] = []
    fleet.started("a", withheld=lambda: "".join(reason))
    await asyncio.sleep(1)
    fleet.started("b")

    reason.append("behind")
    await asyncio.sleep(TTL_S + EVERY_S)

    assert fleet.work.nodes()[:2] == ["a", "b"]
    assert fleet.work.begun[1][1] >= TTL_S


@pytest.mark.parametrize("writes_before", [0, 1])
async def test_a_claim_of_its_own_that_it_never_heard_of_does_not_keep_it_from_the_duty(
    fleet: Fleet, writes_before: int
) -> None:
    """The link goes after one of the claim's writes, for longer than the claim tries to take it back."""
    node = fleet.node("a")
    store = node.process.stores[1]
    if writes_before == 0:
        store.link.cut_after_write()
    else:
        _cut_after_second_write(store)
    node.runner.start([Duty(times=TIMES, work=lambda fence: fleet.work.by("a", fence))])
    await asyncio.sleep(EVERY_S / 2)
    assert fleet.work.begun == []
    assert await fleet.node("b").process.leases.holder(TIMES.resource) is not None

    node.cut(off=False)
    await asyncio.sleep(EVERY_S)

    assert fleet.work.nodes() == ["a"]


def _cut_after_second_write(store: MemoryRecordStore) -> None:
    write = store.bucket.write

    def first(key: str, value: bytes, expected: int) -> Record:
        store.link.cut_after_write()
        store.bucket.write = write
        return write(key, value, expected)

    store.bucket.write = first


@pytest.mark.spec("S-189")
async def test_a_node_alone_always_has_its_duties_also_after_it_slept() -> None:
    clock = SleepyClock()
    worked: list[int] = []

    async def work(fence: Fence) -> None:
        worked.append(fence.epoch)

    leases = MemoryLeases(clock, alone=True)
    runner = DutyRunner(leases, owner="a:1", node_id="a", clock=clock, roles=("workers",))
    runner.start([Duty(times=TIMES, work=work)])
    await asyncio.sleep(EVERY_S + 1)

    clock.slept_s += 10 * TTL_S
    await asyncio.sleep(EVERY_S)
    await runner.stop()

    assert worked == [1, 1, 1]
    assert isinstance(await leases.claim(TIMES.resource, owner="b:1", ttl_s=TTL_S), Lease)


async def test_each_duty_has_a_loop_of_its_own(fleet: Fleet) -> None:
    """One that takes its time holds no other up."""
    node = fleet.node("a")
    quick: list[float] = []

    async def slow(_: Fence) -> None:
        await asyncio.sleep(TTL_S)

    async def work(_: Fence) -> None:
        quick.append(elapsed_s())

    quick_times = type(TIMES)("quick", every_s=10.0, ttl_s=30.0)

    node.runner.start([Duty(times=TIMES, work=slow), Duty(times=quick_times, work=work)])
    await asyncio.sleep(TTL_S - 1)

    assert len(quick) == TTL_S / 10


async def _nothing() -> None:
    pass
