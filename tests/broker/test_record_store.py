"""The record store on a real broker: leader reads, lost replies, the markers of others."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import psutil
import pytest

from crewlet.backends.nats import Connection, EmbeddedBroker, JetStream, NatsRecordStore, connect, open_bucket
from crewlet.backends.nats.bucket_in_force import BucketInForce
from crewlet.base import limits
from crewlet.base.clock import SystemClock
from crewlet.base.errors import Unavailable
from crewlet.base.ids import RandomIds
from crewlet.coordination import RecordStore, Revision, Slot
from crewlet.testing import wait_until
from crewlet.testing.links import LinkProxy, proxied
from crewlet.topics import bucket_stream, bucket_subject

SLOT = Slot("tested", 3600.0, "a slot of the tests")
BUCKET = "crewlet_tested"
STREAM = bucket_stream(BUCKET)
IDS = RandomIds()
IN_FORCE = BucketInForce(slot="tested")


@pytest.fixture
async def store(jetstream: JetStream) -> NatsRecordStore:
    return (await open_bucket(jetstream, SLOT, storage="file", ids=IDS)).store


@asynccontextmanager
async def far_store(broker: EmbeddedBroker) -> AsyncGenerator[tuple[NatsRecordStore, LinkProxy, Connection]]:
    """A store behind a proxy that a test can spoil, with short patience."""
    async with proxied(int(broker.url.rpartition(":")[2])) as proxy:
        wire = await connect(proxy.url, seed=broker.seed)
        try:
            yield NatsRecordStore(JetStream(wire, timeout_s=0.2), IN_FORCE, ids=IDS, clock=SystemClock()), proxy, wire
        finally:
            await wire.close()


async def test_a_write_whose_reply_was_lost_is_returned_as_written(
    broker: EmbeddedBroker, store: NatsRecordStore
) -> None:
    async with far_store(broker) as (far, proxy, _):
        proxy.swallow_replies = True
        creating = asyncio.ensure_future(far.create("a", b"1"))
        await wait_until(lambda: _is_live(store, "a"))
        proxy.swallow_replies = False

        created = await creating

    assert created == await store.get("a")


async def test_an_update_whose_reply_was_lost_is_returned_as_written(
    broker: EmbeddedBroker, store: NatsRecordStore
) -> None:
    first = await store.create("a", b"same")
    async with far_store(broker) as (far, proxy, _):
        proxy.swallow_replies = True
        updating = asyncio.ensure_future(far.update("a", b"same", expected=first.revision))
        await wait_until(lambda: _is_replaced(store, "a", first.revision))
        proxy.swallow_replies = False

        updated = await updating

    assert updated == await store.get("a")
    assert updated.revision > first.revision


async def test_a_lost_reply_beside_somebody_elses_equal_bytes_is_unknown(
    broker: EmbeddedBroker, store: NatsRecordStore
) -> None:
    winner = await store.create("a", b"same")
    async with far_store(broker) as (far, proxy, _):
        proxy.swallow_replies = True
        creating = asyncio.ensure_future(far.create("a", b"same"))
        await wait_until(lambda: proxy.swallowed_bytes > 0)
        proxy.swallow_replies = False

        with pytest.raises(Unavailable):
            await creating

    assert await store.get("a") == winner


async def test_a_removal_whose_reply_was_lost_is_done(broker: EmbeddedBroker, store: NatsRecordStore) -> None:
    first = await store.create("a", b"1")
    async with far_store(broker) as (far, proxy, _):
        proxy.swallow_replies = True
        removing = asyncio.ensure_future(far.delete("a", expected=first.revision))
        await wait_until(lambda: _is_absent(store, "a"))
        proxy.swallow_replies = False

        await removing

    assert await store.get("a") is None


@pytest.mark.slow
async def test_a_write_to_a_stopped_broker_is_unknown_and_its_landing_is_seen_by_the_next_read(
    broker: EmbeddedBroker, store: NatsRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BROKER_REQUEST_TIMEOUT_S", 0.3)
    async with far_store(broker) as (far, _, _wire):
        os.kill(broker.pid, signal.SIGSTOP)
        await wait_until(lambda: psutil.Process(broker.pid).status() == psutil.STATUS_STOPPED)
        with pytest.raises(Unavailable):
            await far.create("a", b"1")
        os.kill(broker.pid, signal.SIGCONT)

        await wait_until(lambda: _is_live(store, "a"), what="the write that timed out")


@pytest.mark.spec("C-053")
async def test_reads_are_the_leaders_and_never_direct(wire: Connection, store: NatsRecordStore) -> None:
    asked: list[str] = []
    request = wire.request

    async def noted(subject: str, payload: bytes = b"", **rest: object) -> object:
        asked.append(subject)
        return await request(subject, payload, **rest)  # pyright: ignore[reportArgumentType]

    wire.request = noted  # pyright: ignore[reportAttributeAccessIssue]
    first = await store.create("a", b"1")
    await store.get("a")
    await store.update("a", b"2", expected=first.revision)
    await store.delete("a", expected=Revision(2))

    api = {subject for subject in asked if subject.startswith("$JS.API")}
    assert api == {f"$JS.API.STREAM.MSG.GET.{STREAM}"}


@pytest.mark.spec("C-026")
async def test_reading_appends_nothing(jetstream: JetStream, store: NatsRecordStore) -> None:
    await store.create("a", b"1")
    before = await jetstream.stream_info(STREAM)

    for _ in range(20):
        await store.get("a")
        await store.get("b")

    after = await jetstream.stream_info(STREAM)
    assert before is not None
    assert after is not None
    assert after.state == before.state


async def test_a_bucket_that_is_gone_is_unavailable_and_never_empty(
    jetstream: JetStream, store: NatsRecordStore
) -> None:
    await store.create("a", b"1")
    await jetstream.stream_delete(STREAM)

    with pytest.raises(Unavailable):
        await store.get("a")
    with pytest.raises(Unavailable):
        await NatsRecordStore(JetStream(jetstream.wire, timeout_s=0.1), IN_FORCE, ids=IDS, clock=SystemClock()).create(
            "a", b"1"
        )


async def test_a_removal_is_the_marker_that_key_value_tools_know(jetstream: JetStream, store: NatsRecordStore) -> None:
    first = await store.create("a", b"1")
    await store.delete("a", expected=first.revision)

    marker = await jetstream.last_message(STREAM, bucket_subject(BUCKET, "a"))

    assert marker is not None
    assert (marker.headers["KV-Operation"], marker.data) == ("DEL", b"")


@pytest.mark.parametrize("headers", [{"KV-Operation": "PURGE"}, {"Nats-Marker-Reason": "MaxAge"}])
async def test_the_markers_of_others_count_as_removals(
    jetstream: JetStream, store: NatsRecordStore, headers: dict[str, str]
) -> None:
    await store.create("a", b"1")
    await jetstream.publish(bucket_subject(BUCKET, "a"), b"", headers=headers)

    assert await store.get("a") is None
    assert (await store.create("a", b"2")).value == b"2"


async def _is_live(store: RecordStore, key: str) -> bool:
    return await store.get(key) is not None


async def _is_absent(store: RecordStore, key: str) -> bool:
    return await store.get(key) is None


async def _is_replaced(store: RecordStore, key: str, revision: Revision) -> bool:
    live = await store.get(key)
    return live is not None and live.revision > revision
