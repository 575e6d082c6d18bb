"""A stream that was lost and made anew behind a running store: nothing is answered from it, least of all an epoch."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial

import pytest
from structlog.testing import capture_logs

from crewlet.backends.nats import (
    Connection,
    EmbeddedBroker,
    JetStream,
    NatsRecordStore,
    bucket_config,
    connect,
    open_bucket,
)
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.ids import RandomIds
from crewlet.coordination import Record, Revision, Slot
from crewlet.node.shared_stores import lost_buckets
from crewlet.testing import wait_until
from crewlet.testing.links import LinkProxy, proxied

SLOT = Slot("tested", None, "a slot of the tests")
STREAM = "KV_crewlet_tested"
Verb = Callable[[NatsRecordStore, Record], Awaitable[object]]
VERBS: dict[str, Verb] = {
    "get": lambda store, record: store.get(record.key),
    "create": lambda store, record: store.create(record.key, b"1"),
    "update": lambda store, record: store.update(record.key, b"1", expected=record.revision),
    "delete": lambda store, record: store.delete(record.key, expected=record.revision),
    "list": lambda store, _: store.list("seat.>"),
    "watch": lambda store, _: _watched(store),
    "last_revision": lambda store, _: store.last_revision(),
    "purge_markers": lambda store, _: store.purge_markers(before=datetime.now(UTC)),
}


@asynccontextmanager
async def opened(broker: EmbeddedBroker) -> AsyncGenerator[tuple[NatsRecordStore, Callable[[], Awaitable[None]]]]:
    """A store on a link of its own, and what gives it another link."""
    async with proxied(int(broker.url.rpartition(":")[2])) as proxy:
        wire = await connect(proxy.url, seed=broker.seed)
        try:
            store = (await open_bucket(JetStream(wire), SLOT, storage="file", ids=RandomIds())).store
            yield store, partial(_relinked, proxy, wire)
        finally:
            await wire.close()


async def replace(jetstream: JetStream) -> None:
    await jetstream.stream_delete(STREAM)
    await open_bucket(jetstream, SLOT, storage="file", ids=RandomIds())


async def test_a_bucket_that_is_made_anew_on_purpose_is_served_from_its_beginning(
    broker: EmbeddedBroker, jetstream: JetStream
) -> None:
    config = bucket_config(SLOT, storage="file", replicas=1)
    async with opened(broker) as (store, relinked):
        record = await store.create("seat.a", b"1")
        kept = await store.remake(config)
        await jetstream.stream_delete(STREAM)
        await relinked()
        with pytest.raises(Unavailable, match="gone"):
            await store.get("seat.a")

        remade = await store.remake(config)

        assert (kept, remade, await store.get("seat.a"), await store.list("seat.>")) == (False, True, None, [])
        assert (await store.create("seat.a", b"2")).revision == record.revision


async def test_a_store_says_that_its_bucket_is_lost_until_it_is_there_again(
    broker: EmbeddedBroker, jetstream: JetStream
) -> None:
    async with opened(broker) as (store, _):
        stores = {SLOT.name: store}
        before = lost_buckets(stores)
        await store.create("seat.a", b"1")
        await jetstream.stream_delete(STREAM)
        with pytest.raises(Unavailable):
            await store.get("seat.a")
        gone = lost_buckets(stores)
        await open_bucket(jetstream, SLOT, storage="file", ids=RandomIds())
        with pytest.raises(Unavailable):
            await store.last_revision()
        replaced = lost_buckets(stores)
        await store.remake(bucket_config(SLOT, storage="file", replicas=1))

        assert (before, lost_buckets(stores)) == ("", "")
        assert gone == replaced
        assert "crewlet_tested" in gone


async def test_a_bucket_that_another_made_anew_first_is_served_too_once_that_is_wanted(
    broker: EmbeddedBroker, jetstream: JetStream
) -> None:
    async with opened(broker) as (store, relinked):
        await store.create("seat.a", b"1")
        await replace(jetstream)
        await relinked()
        with pytest.raises(Unavailable, match="made anew"):
            await store.get("seat.a")

        assert await store.remake(bucket_config(SLOT, storage="file", replicas=1))

        assert await store.get("seat.a") is None


@pytest.mark.parametrize("verb", VERBS)
async def test_after_a_new_link_a_bucket_made_anew_is_unavailable_to_every_verb(
    broker: EmbeddedBroker, jetstream: JetStream, verb: str
) -> None:
    async with opened(broker) as (store, relinked):
        record = await store.create("seat.a", b"1")
        await replace(jetstream)
        await relinked()

        for _ in range(2):
            with pytest.raises(Unavailable, match="made anew"):
                await VERBS[verb](store, record)

    assert await jetstream.last_message(STREAM, "$KV.crewlet_tested.>") is None


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "purge_markers"])
async def test_on_the_same_link_a_bucket_made_anew_is_unavailable_too(
    broker: EmbeddedBroker, jetstream: JetStream, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BUCKET_CONFIRMED_EVERY_S", 0.0)
    async with opened(broker) as (store, _):
        record = await store.create("seat.a", b"1")
        await replace(jetstream)

        with pytest.raises(Unavailable, match="made anew"):
            await VERBS[verb](store, record)


async def test_it_is_said_once_and_loudly(broker: EmbeddedBroker, jetstream: JetStream) -> None:
    async with opened(broker) as (store, _):
        await store.create("seat.a", b"1")
        await replace(jetstream)

        with capture_logs() as logs:
            for _ in range(3):
                with pytest.raises(Unavailable):
                    await store.create("seat.b", b"1")

    said = [entry for entry in logs if entry["event"] == "bucket_replaced"]
    assert [(entry["log_level"], entry["bucket"]) for entry in said] == [("error", "crewlet_tested")]


async def test_many_writes_at_once_do_not_look_like_a_bucket_made_anew(
    broker: EmbeddedBroker, jetstream: JetStream
) -> None:
    async with opened(broker) as (store, _):
        written = await asyncio.gather(*(store.create(f"seat.s{number}", b"1") for number in range(300)))

    assert sorted(record.revision for record in written) == [*range(1, 301)]


@pytest.mark.slow
async def test_a_broker_that_was_restarted_has_the_same_bucket(broker: EmbeddedBroker) -> None:
    wire = await connect(broker.urls, seed=broker.seed)
    try:
        store = (await open_bucket(JetStream(wire), SLOT, storage="file", ids=RandomIds())).store
        record = await store.create("seat.a", b"1")
        before = broker.pid
        os.kill(before, signal.SIGKILL)
        await wait_until(lambda: broker.pid != before and _asked(store.last_revision))

        assert await store.get("seat.a") == record
        assert await store.list("seat.>") == [record]
        assert (await store.update("seat.a", b"2", expected=record.revision)).revision == 2
    finally:
        await wire.close()


async def _relinked(proxy: LinkProxy, wire: Connection) -> None:
    stands = asyncio.Event()
    forget = wire.on_reconnected(stands.set)
    proxy.drop()
    await stands.wait()
    forget()


async def _watched(store: NatsRecordStore) -> None:
    async with store.watch("seat.>"):
        pytest.fail("a watch on a bucket that is another")


async def _asked(ask: Callable[[], Awaitable[Revision]]) -> bool:
    try:
        await ask()
    except Unavailable:
        return False
    return True
