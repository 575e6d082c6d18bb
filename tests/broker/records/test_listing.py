"""Listings, watches and sweeps on a real broker: what it does to a pass, and what a pass leaves with it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from crewlet.backends.nats import Connection, EmbeddedBroker, JetStream, NatsRecordStore, connect, open_bucket
from crewlet.backends.nats.wire import Message
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.ids import RandomIds
from crewlet.base.tasks import each_at_once
from crewlet.coordination import Slot
from crewlet.testing import wait_until
from crewlet.testing.clusters import Cluster
from crewlet.testing.links import LinkProxy, proxied
from tests.broker.queue.wires import PassedOn

SLOT = Slot("tested", None, "a slot of the tests")
STREAM = "KV_crewlet_tested"
IDS = RandomIds()


class Noted(PassedOn):
    """Remembers what was asked, and lets a test act as soon as a pass was made."""

    def __init__(self, inner: Connection, on_made: Callable[[], None] = lambda: None) -> None:
        super().__init__(inner)
        self.asked: list[str] = []
        self._on_made = on_made

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        self.asked.append(subject)
        if "CONSUMER.CREATE" not in subject:
            return await super().request(subject, payload, headers=headers, timeout_s=timeout_s)
        answer = await super().request(subject, payload, headers=headers, timeout_s=timeout_s)
        self._on_made()
        return answer


@asynccontextmanager
async def far_wire(broker: EmbeddedBroker) -> AsyncGenerator[tuple[Connection, LinkProxy]]:
    async with proxied(int(broker.url.rpartition(":")[2])) as proxy:
        wire = await connect(proxy.url, seed=broker.seed)
        try:
            yield wire, proxy
        finally:
            await wire.close()


async def opened(jetstream: JetStream) -> NatsRecordStore:
    return (await open_bucket(jetstream, SLOT, storage="file", ids=IDS)).store


async def fill(jetstream: JetStream, keys: Sequence[str], value: bytes) -> None:
    async def write(key: str) -> None:
        await jetstream.publish(f"$KV.crewlet_tested.{key}", value)

    await each_at_once(keys, write, at_once=200)


async def no_pass_is_left(jetstream: JetStream) -> bool:
    return await jetstream.consumer_names(STREAM) == []


@pytest.mark.spec("C-048", "C-049")
async def test_listings_and_watches_ask_nothing_but_the_pass_and_the_leader(
    wire: Connection, jetstream: JetStream
) -> None:
    noted = Noted(wire)
    store = await opened(JetStream(noted))
    await store.create("seat.a", b"1")
    noted.asked.clear()

    await store.list("seat.>")
    async with store.watch("seat.>"):
        pass

    verbs = {".".join(subject.split(".")[2:4]) for subject in noted.asked}
    assert verbs == {"CONSUMER.CREATE", "STREAM.INFO", "CONSUMER.DELETE"}


@pytest.mark.slow
@pytest.mark.spec("C-029", "C-032")
async def test_a_pass_whose_pending_records_all_go_ends_by_the_quiet_rule(
    broker: EmbeddedBroker, jetstream: JetStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LISTING_QUIET_S", 0.5)
    await opened(jetstream)
    keys = [f"seat.s{number}" for number in range(1000)]
    await fill(jetstream, keys, b"x" * 32_768)
    async with far_wire(broker) as (wire, proxy):
        far = await opened(JetStream(Noted(wire, proxy.freeze)))
        listing = asyncio.ensure_future(far.list("seat.>"))
        await wait_until(lambda: _is_stalled(jetstream), what="a pass that waits for its reader")
        await jetstream.stream_purge(STREAM)
        proxy.thaw()

        with capture_logs() as logs:
            async with asyncio.timeout(10):
                found = await listing

    assert [entry["event"] for entry in logs] == ["bucket_pass_quiet"]
    shown = keys[: logs[0]["shown"]]
    assert 0 < len(shown) < len(keys)
    # What was shown stood when the index was read, before or after the purge; of the rest the leader held nothing.
    assert {record.key for record in found} <= {*shown}
    assert await no_pass_is_left(jetstream)


@pytest.mark.slow
@pytest.mark.spec("C-014", "C-041")
async def test_a_link_that_drops_in_the_middle_hands_nothing_out_and_leaves_no_pass(
    broker: EmbeddedBroker, jetstream: JetStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LISTING_REAPED_AFTER_S", 0.2)
    await opened(jetstream)
    await fill(jetstream, [f"seat.s{number}" for number in range(200)], b"x" * 32_768)
    async with far_wire(broker) as (wire, proxy):
        far = await opened(JetStream(Noted(wire, proxy.freeze)))
        listing = asyncio.ensure_future(far.list("seat.>"))
        await wait_until(lambda: _is_stalled(jetstream), what="a pass that waits for its reader")

        proxy.drop()
        with pytest.raises(Unavailable):
            await listing

    await wait_until(lambda: no_pass_is_left(jetstream), what="the broker to reap the pass")


@pytest.mark.slow
async def test_ten_thousand_records_larger_than_any_buffer_are_listed_while_the_link_stays_usable(
    jetstream: JetStream,
) -> None:
    store = await opened(jetstream)
    keys = [f"seat.s{number}" for number in range(300)]
    await fill(jetstream, keys, b"x" * 524_288)

    listing = asyncio.ensure_future(store.list("seat.>"))
    first = await store.get("seat.s0")
    found = await listing

    assert first in found
    assert sorted(record.key for record in found) == sorted(keys)
    assert {len(record.value) for record in found} == {524_288}


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.spec("C-013", "C-047")
async def test_more_keys_than_one_page_of_the_index_are_all_listed(jetstream: JetStream) -> None:
    store = (await open_bucket(jetstream, SLOT, storage="memory", ids=IDS)).store
    keys = [f"seat.s{number}" for number in range(limits.LISTING_INDEX_PAGE + 100)]
    await fill(jetstream, keys, b"1")

    found = await store.list("seat.>")

    assert len(found) == len(keys)
    assert {record.key for record in found} == {*keys}


@pytest.mark.slow
@pytest.mark.spec("C-003")
async def test_listings_given_up_at_any_moment_leave_no_pass_no_task_and_no_inbox(
    wire: Connection, jetstream: JetStream
) -> None:
    store = await opened(jetstream)
    await fill(jetstream, [f"seat.s{number}" for number in range(300)], b"x" * 200)
    chance = random.Random(7)
    tasks = len(asyncio.all_tasks())

    for _ in range(200):
        listing = asyncio.ensure_future(store.list("seat.>"))
        await asyncio.sleep(chance.random() * 0.01)
        listing.cancel()
        await asyncio.wait([listing])

    await wait_until(lambda: no_pass_is_left(jetstream), what="a broker without passes")
    await wait_until(lambda: len(asyncio.all_tasks()) == tasks, what="as many tasks as at the start")
    assert wire.pending_requests == 0


async def test_a_bucket_that_is_gone_cannot_be_listed_watched_or_swept(jetstream: JetStream) -> None:
    store = await opened(jetstream)
    await store.create("seat.a", b"1")
    await jetstream.stream_delete(STREAM)

    with pytest.raises(Unavailable):
        await store.list("seat.>")
    with pytest.raises(Unavailable):
        async with store.watch("seat.>"):
            pytest.fail("a watch on nothing")
    with pytest.raises(Unavailable):
        await store.purge_markers(before=datetime.now(UTC))
    with pytest.raises(Unavailable):
        await store.last_revision()


async def test_a_bucket_with_no_room_for_another_consumer_is_unavailable(jetstream: JetStream) -> None:
    store = await opened(jetstream)
    await store.create("seat.a", b"1")
    await jetstream.stream_change(STREAM, {"max_consumers": 1})
    async with store.watch("seat.>"):
        with pytest.raises(Unavailable, match="cannot be read"):
            await store.list("seat.>")

    assert len(await store.list("seat.>")) == 1


async def test_a_watch_whose_consumer_was_deleted_is_over_before_long(
    jetstream: JetStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WATCH_HEARTBEAT_S", 0.1)
    store = await opened(jetstream)
    async with store.watch("seat.>") as watch:
        (name,) = await jetstream.consumer_names(STREAM)
        await jetstream.consumer_delete(STREAM, name)

        async with asyncio.timeout(5):
            with pytest.raises(Unavailable):
                await watch.next()


async def test_the_position_reaches_the_last_write_though_that_was_taken_away(
    jetstream: JetStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WATCH_HEARTBEAT_S", 0.1)
    store = await opened(jetstream)
    async with store.watch("seat.>") as watch:
        first = await store.create("seat.a", b"1")
        await store.create("seat.b", b"1")
        await jetstream.stream_purge(STREAM, subject="$KV.crewlet_tested.seat.b")

        assert await store.last_revision() == first.revision
        await wait_until(lambda: watch.position >= first.revision)


@pytest.mark.spec("C-156")
async def test_a_purged_marker_is_gone_and_what_was_written_since_is_not(jetstream: JetStream) -> None:
    store = await opened(jetstream)
    for key in ("seat.a", "seat.b"):
        await store.delete(key, expected=(await store.create(key, b"1")).revision)
    kept = await store.create("seat.b", b"2")

    swept = await store.purge_markers(before=datetime.now(UTC) + timedelta(hours=1))

    info = await jetstream.stream_info(STREAM, subjects_filter="$KV.crewlet_tested.>")
    assert swept == 1
    assert info is not None
    assert info.state.subjects == {"$KV.crewlet_tested.seat.b": 1}
    assert await store.get("seat.b") == kept


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.timeout(120)
@pytest.mark.spec("C-023", "C-055")
async def test_without_a_leader_nothing_is_answered(members: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BROKER_REQUEST_TIMEOUT_S", 1.0)
    wires = [await members.connect(f"member{member}", member=member) for member in range(members.size)]
    slot = Slot("unled", None, "a slot of the tests")
    stores = [
        (await open_bucket(JetStream(wire, timeout_s=1.0), slot, storage="file", ids=IDS, replicas=3)).store
        for wire in wires
    ]
    keys = [f"seat.s{number}" for number in range(20)]
    for key in keys:
        await stores[0].create(key, b"1")
    leader = await members.leader(JetStream(wires[0]), "KV_crewlet_unled")
    lost = [member for member in range(members.size) if f"member{member}" != leader][:1]
    lost.append(int(leader.removeprefix("member")))
    (left,) = {0, 1, 2} - {*lost}

    for member in lost:
        members.pause(member)
    try:
        # The one that is left has every record in its own copy, and says nothing of it.
        for _ in range(3):
            with pytest.raises(Unavailable):
                await stores[left].list("seat.>")
            with pytest.raises(Unavailable):
                await stores[left].get(keys[0])
    finally:
        for member in lost:
            members.resume(member)

    await wait_until(lambda: _lists(stores[left], keys), what="a bucket that is led again", timeout_s=60)
    for wire in wires:
        await wire.close()


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.timeout(120)
@pytest.mark.spec("C-024")
async def test_a_leader_that_lost_its_peers_answers_from_its_own_copy_for_seconds_and_then_not_at_all(
    members: Cluster,
) -> None:
    first = await members.connect("first")
    slot = Slot("cut_off", None, "a slot of the tests")
    await open_bucket(JetStream(first), slot, storage="file", ids=IDS, replicas=3)
    leader = int((await members.leader(JetStream(first), "KV_crewlet_cut_off")).removeprefix("member"))
    wire = await members.connect("at the leader", member=leader)
    store = (await open_bucket(JetStream(wire, timeout_s=1.0), slot, storage="file", ids=IDS, replicas=3)).store
    record = await store.create("seat.a", b"1")
    peers = [member for member in range(members.size) if member != leader]

    for member in peers:
        members.pause(member)
    try:
        assert await store.get("seat.a") == record
        await wait_until(lambda: _is_unavailable(store), what="a leader that noticed", timeout_s=30)
    finally:
        for member in peers:
            members.resume(member)

    await wait_until(lambda: _lists(store, ["seat.a"]), what="a bucket that is led again", timeout_s=60)
    await wire.close()
    await first.close()


async def _is_unavailable(store: NatsRecordStore) -> bool:
    try:
        await store.get("seat.a")
    except Unavailable:
        return True
    return False


async def _lists(store: NatsRecordStore, keys: list[str]) -> bool:
    try:
        found = await store.list("seat.>")
    except Unavailable:
        return False
    assert sorted(record.key for record in found) == sorted(keys)
    return True


async def _is_stalled(jetstream: JetStream) -> bool:
    """Whether there is a pass, and it has delivered some and not all, and delivers no more."""
    before = await jetstream.consumer_infos(STREAM)
    await asyncio.sleep(0.1)
    after = await jetstream.consumer_infos(STREAM)
    return bool(before) and before[0].delivered == after[0].delivered and after[0].num_pending > 0
