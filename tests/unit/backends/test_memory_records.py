"""What the record store's twin has beside its contract: links and a bucket that a test can spoil, and others' turns."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryLink, MemoryRecordStore
from crewlet.base import limits
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import Slot
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def bucket() -> MemoryBucket:
    return MemoryBucket(Slot("tested", 60.0, "a slot of the tests"), VirtualClock())


@pytest.fixture
async def store(bucket: MemoryBucket) -> MemoryRecordStore:
    return MemoryRecordStore(bucket)


async def test_a_bucket_that_is_cut_is_out_of_everybodys_reach(bucket: MemoryBucket, store: MemoryRecordStore) -> None:
    first = await store.create("a", b"1")
    bucket.cut = True

    with pytest.raises(Unavailable):
        await store.get("a")
    with pytest.raises(Unavailable):
        await MemoryRecordStore(bucket).get("a")

    bucket.cut = False
    assert await store.get("a") == first


async def test_a_bucket_that_is_cut_ends_the_watches_on_it(bucket: MemoryBucket, store: MemoryRecordStore) -> None:
    async with store.watch("a") as watch:
        bucket.cut = True
        bucket.cut = False

        with pytest.raises(Unavailable):
            await watch.next()


async def test_a_leader_that_goes_in_the_middle_of_a_listing_leaves_it_unanswered(
    bucket: MemoryBucket, store: MemoryRecordStore
) -> None:
    for number in range(8):
        await store.create(f"a.{number}", b"1")

    async def go() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        bucket.cut = True

    listed, _ = await asyncio.gather(store.list("a.>"), go(), return_exceptions=True)

    assert isinstance(listed, Unavailable)


async def test_others_write_while_a_listing_runs_and_it_may_be_late_about_it(
    bucket: MemoryBucket, store: MemoryRecordStore
) -> None:
    stays = await store.create("a.stays", b"1")
    goes = await store.create("a.goes", b"1")
    other = MemoryRecordStore(bucket)

    listed, _, _ = await asyncio.gather(
        store.list("a.>"), other.create("a.comes", b"1"), other.delete("a.goes", expected=goes.revision)
    )

    assert listed == [stays]
    assert {record.key for record in await store.list("a.>")} == {"a.stays", "a.comes"}


async def test_a_silent_link_answers_nothing_for_as_long_as_a_question_is_waited_for(
    bucket: MemoryBucket, store: MemoryRecordStore
) -> None:
    store.link.silent = True
    clock = VirtualClock()
    asked_s = clock.elapsed_s()

    with pytest.raises(Unavailable):
        await store.get("a")

    assert clock.elapsed_s() - asked_s == limits.BROKER_REQUEST_TIMEOUT_S
    assert await MemoryRecordStore(bucket).get("a") is None


async def test_several_stores_of_one_node_may_share_a_link(bucket: MemoryBucket) -> None:
    link = MemoryLink()
    one, other = MemoryRecordStore(bucket, link), MemoryRecordStore(bucket, link)
    link.cut = True

    with pytest.raises(Unavailable):
        await one.get("a")
    with pytest.raises(Unavailable):
        await other.get("a")


async def test_changes_come_late_to_a_watch_behind_a_slow_link(bucket: MemoryBucket, store: MemoryRecordStore) -> None:
    slow = MemoryRecordStore(bucket, MemoryLink(watch_delay_s=3.0))
    clock = VirtualClock()

    async with slow.watch("a.>") as watch:
        first = await store.create("a.1", b"1")
        await asyncio.sleep(1.0)
        second = await store.create("a.2", b"1")
        before = watch.position
        changes = [await watch.next(), await watch.next()]

    assert before == 0
    assert [change.record for change in changes] == [first, second]
    assert clock.elapsed_s() == 4.0


async def test_a_watch_that_is_not_read_for_too_long_is_over(
    store: MemoryRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WATCH_BACKLOG_MAX", 3)

    async with store.watch("a.>") as watch:
        for number in range(4):
            await store.create(f"a.{number}", b"1")

        with pytest.raises(Unavailable):
            await watch.next()


async def test_a_lost_reply_beside_somebody_elses_next_write_is_unknown(
    bucket: MemoryBucket, store: MemoryRecordStore
) -> None:
    first = await store.create("a", b"1")
    store.link.lose_reply()

    async def overtake() -> None:
        await asyncio.sleep(0.01)
        other = MemoryRecordStore(bucket)
        seen = await other.get("a")
        assert seen is not None
        assert seen.value == b"2"
        await other.update("a", b"3", expected=seen.revision)

    outcome, _ = await asyncio.gather(
        store.update("a", b"2", expected=first.revision), overtake(), return_exceptions=True
    )

    assert isinstance(outcome, Unavailable)


async def test_a_marker_ages_as_a_record_does(store: MemoryRecordStore) -> None:
    first = await store.create("a", b"1")
    await store.delete("a", expected=first.revision)
    await asyncio.sleep(60.0)

    assert await store.last_revision() == 0
    assert (await store.create("a", b"2")).revision > first.revision


async def test_a_client_knows_the_buckets_time_as_well_as_it_was_told(bucket: MemoryBucket) -> None:
    vague = MemoryBucket(bucket.slot, VirtualClock(), uncertainty_s=0.5)

    exact, told = await MemoryRecordStore(bucket).time(), await MemoryRecordStore(vague).time()

    assert exact.latest == exact.earliest
    assert told.latest - told.earliest == timedelta(seconds=1)


async def test_a_withheld_write_that_lost_its_place_changes_nothing(
    bucket: MemoryBucket, store: MemoryRecordStore
) -> None:
    store.link.withhold()
    with pytest.raises(Unavailable):
        await store.create("a", b"late")
    other = MemoryRecordStore(bucket)
    first = await other.create("a", b"1")

    store.link.deliver()

    assert await other.get("a") == first
    with pytest.raises(Conflict):
        await store.create("a", b"again")
