"""What the record store's reads cost beside the bare client's same requests, and a listing beside what it replaces.

All on one broker and one bucket of 10,000 records of 200 bytes, each with the header that the store's writes have. The
floor of a listing is the bare client's ordered pass over the same keys, which proves nothing of what it shows; beside
it stand the two ways to list without one: the names first, then each record by itself, one after another or many at
once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final

import uvloop
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.kv import KeyValue

from benchmarks.figures import Figure, Measurement, Sizes, figure
from benchmarks.queue_rig import BROKERS_OWN_INTERVAL_S, bare_client, in_turns, many_at_once
from crewlet.backends.nats import JetStream, NatsRecordStore, connect, open_bucket
from crewlet.base.ids import RandomIds
from crewlet.coordination import Slot
from crewlet.testing.brokers import running_broker
from crewlet.topics import bucket, bucket_stream, bucket_subject

__all__ = ["MEASUREMENTS"]

_SLOT: Final = Slot("measured", None, "a slot of the benchmarks")
_BUCKET: Final = bucket(_SLOT.name)
_PATTERN: Final = "seat.>"
_VALUE: Final = b"x" * 200
_IN_FLIGHT: Final = 100
_READ_BOUND: Final = 1.15
_PASS_BOUND: Final = 1.3
_BY_NAME_BOUND: Final = 1 / 8
_AT_ONCE_BOUND: Final = 1 / 3
_NAMES_FIRST: Final = "nats-py: `keys()`, then `get` of each"


def _reads(sizes: Sizes) -> Sequence[Figure]:
    return uvloop.run(_measure(sizes))


async def _measure(sizes: Sizes) -> Sequence[Figure]:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(sync_interval_s=BROKERS_OWN_INTERVAL_S))
        bare = await stack.enter_async_context(bare_client(broker))
        wire = await connect(broker.urls, seed=broker.seed, name="ours")
        stack.push_async_callback(wire.close)
        store = (await open_bucket(JetStream(wire), _SLOT, storage=broker.storage, ids=RandomIds())).store
        keys = [f"seat.s{number}" for number in range(sizes.records)]
        await many_at_once([_creation(store, key) for key in keys], _IN_FLIGHT)
        keys_and_values = await bare.key_value(_BUCKET)
        return [
            await _single(store, bare, keys, sizes),
            *await _listings(store, bare, keys_and_values, keys, sizes),
        ]


async def _single(store: NatsRecordStore, bare: JetStreamContext, keys: Sequence[str], sizes: Sizes) -> Figure:
    chosen = keys[:: max(len(keys) // sizes.record_reads, 1)]

    async def ours() -> float:
        began_s = time.perf_counter()
        for key in chosen:
            assert await store.get(key)
        return (time.perf_counter() - began_s) / len(chosen) * 1e6

    async def bares() -> float:
        began_s = time.perf_counter()
        for key in chosen:
            await bare.get_last_msg(bucket_stream(_BUCKET), bucket_subject(_BUCKET, key))
        return (time.perf_counter() - began_s) / len(chosen) * 1e6

    our_us, bare_us = await in_turns(sizes.slices, ours, bares)
    floor_name = "nats-py: the same leader read, `get_last_msg`"
    return figure("record_read_us", our_us, "µs", floor=bare_us, floor_name=floor_name, bound=_READ_BOUND * bare_us)


async def _listings(
    store: NatsRecordStore, bare: JetStreamContext, kv: KeyValue, keys: Sequence[str], sizes: Sizes
) -> Sequence[Figure]:
    async def ours() -> None:
        assert len(await store.list(_PATTERN)) == len(keys)

    async def one_pass() -> None:
        await _bare_pass(bare, len(keys))

    async def names_first(in_flight: int) -> None:
        names = await kv.keys()  # pyright: ignore[reportUnknownMemberType]
        await many_at_once([_reading(kv, name) for name in names], in_flight)

    our_ms, pass_ms = await in_turns(sizes.slices, _timed(ours), _timed(one_pass))
    beside_ms, one_by_one_ms, at_once_ms = await in_turns(
        min(sizes.slices, 3),
        _timed(ours),
        _timed(lambda: names_first(1)),
        _timed(lambda: names_first(_IN_FLIGHT)),
    )
    return [
        figure(
            "listing_ms",
            our_ms,
            "ms",
            floor=pass_ms,
            floor_name="nats-py: one ordered pass, by callback",
            bound=_PASS_BOUND * pass_ms,
        ),
        figure(
            "listing_beside_names_first_ms",
            beside_ms,
            "ms",
            peer=one_by_one_ms,
            peer_name=_NAMES_FIRST,
            bound=_BY_NAME_BOUND * one_by_one_ms,
        ),
        figure(
            "listing_beside_reads_at_once_ms",
            beside_ms,
            "ms",
            peer=at_once_ms,
            peer_name=f"{_NAMES_FIRST}, {_IN_FLIGHT} in flight",
            bound=_AT_ONCE_BOUND * at_once_ms,
        ),
    ]


async def _bare_pass(bare: JetStreamContext, count: int) -> None:
    shown: list[Msg] = []
    done = asyncio.Event()

    async def take(message: Msg) -> None:
        shown.append(message)
        if len(shown) == count:
            done.set()

    subscription = await bare.subscribe(  # pyright: ignore[reportUnknownMemberType]
        bucket_subject(_BUCKET, _PATTERN),
        cb=take,
        ordered_consumer=True,
        pending_msgs_limit=-1,
        pending_bytes_limit=-1,
    )
    await done.wait()
    await subscription.unsubscribe()


def _timed(work: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[float]]:
    async def took() -> float:
        began_s = time.perf_counter()
        await work()
        return (time.perf_counter() - began_s) * 1e3

    return took


def _creation(store: NatsRecordStore, key: str) -> Callable[[], Awaitable[object]]:
    return lambda: store.create(key, _VALUE)


def _reading(kv: KeyValue, name: str) -> Callable[[], Awaitable[object]]:
    return lambda: kv.get(name)


MEASUREMENTS: Final = (
    Measurement(
        "records",
        {
            "record_read_us": "a record read from the leader",
            "listing_ms": "a certified listing of 10,000 records of 200 bytes",
            "listing_beside_names_first_ms": "the same beside names first, then each record by itself",
            "listing_beside_reads_at_once_ms": "the same beside names first, then 100 records at once",
        },
        _reads,
    ),
)
