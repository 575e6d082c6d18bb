"""What a message costs in `subscribe_batch`, beside the bare client's fetch(64) with confirmed acks in flight together.

Both drain the same mailbox in turns, so that stream, sync and the number of consumers are the same by construction.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

import uvloop
from nats.js import JetStreamContext

from benchmarks.figures import Figure, Measurement, Sizes, figure
from benchmarks.queue_peers import FASTSTREAM, FASTSTREAM_FAST, TASKIQ, TASKIQ_FAST, Peer
from benchmarks.queue_rig import (
    BROKERS_OWN_INTERVAL_S,
    Counted,
    OurClient,
    Side,
    bare_client,
    fill,
    in_turns,
    inbox,
    many_at_once,
    our_client,
)
from crewlet import topics
from crewlet.backends.nats import EmbeddedBroker
from crewlet.events import Event
from crewlet.queue import Ack, Batch, BatchOptions, Outcome, Subscription
from crewlet.testing.brokers import running_broker

__all__ = ["MEASUREMENTS", "our_drains"]

_BATCH: Final = 64
_FETCH_TIMEOUT_S: Final = 5
_ACK_TIMEOUT_S: Final = 10
_BARE_SHARE: Final = 0.8
_BARE: Final = "nats-py: fetch(64), confirmed acks in flight together, same mailbox"
_MAILBOX: Final = inbox("drained")
_CROWDS: Final = ("1", "300", "3000")
_CREATES_IN_FLIGHT: Final = 32


@dataclass(frozen=True, slots=True)
class _Beside:
    """A peer, the names of its figures, and how many times faster than it we promise to be, where we do."""

    peer: Peer
    name: str
    times: float | None


_PEERS_UNSYNCED: Final = (
    _Beside(FASTSTREAM, "batch_unsynced_faststream_us", 4.0),
    _Beside(TASKIQ, "batch_unsynced_taskiq_us", 2.4),
    _Beside(FASTSTREAM_FAST, "batch_unsynced_faststream_fast_us", None),
    _Beside(TASKIQ_FAST, "batch_unsynced_taskiq_fast_us", None),
)
_PEERS_SYNCED: Final = (
    _Beside(FASTSTREAM, "batch_faststream_us", None),
    _Beside(TASKIQ, "batch_taskiq_us", None),
)


def _batches(sizes: Sizes) -> Sequence[Figure]:
    synced = uvloop.run(_measure(sizes, "batch", None, _PEERS_SYNCED))
    unsynced = uvloop.run(_measure(sizes, "batch_unsynced", BROKERS_OWN_INTERVAL_S, _PEERS_UNSYNCED))
    return [*synced, *unsynced]


async def _measure(
    sizes: Sizes, prefix: str, sync_interval_s: float | None, peers: Sequence[_Beside]
) -> Sequence[Figure]:
    figures: list[Figure] = []
    messages = sizes.drained
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(sync_interval_s=sync_interval_s))
        bare = await stack.enter_async_context(bare_client(broker))
        client = await stack.enter_async_context(our_client(broker))
        ours = await our_drains(client, bare, messages)
        theirs = partial(_bare_drain, bare, messages)
        have = 1
        for label, crowd in zip(_CROWDS, sizes.crowds, strict=True):
            await _crowd(client, range(have, crowd))
            have = crowd
            our_s, bare_s = await in_turns(sizes.slices, ours, theirs)
            floor_us = _us(bare_s, messages)
            name = f"{prefix}_{label}_us"
            bound = floor_us / _BARE_SHARE
            figures.append(figure(name, _us(our_s, messages), "µs", floor=floor_us, floor_name=_BARE, bound=bound))
            if crowd == 1:
                figures += [await _beside(broker, bare, each, ours, sizes) for each in peers]
    return figures


async def _beside(broker: EmbeddedBroker, bare: JetStreamContext, beside: _Beside, ours: Side, sizes: Sizes) -> Figure:
    if not beside.peer.installed:
        (our_s,) = await in_turns(sizes.slices, ours)
        return figure(beside.name, _us(our_s, sizes.drained), "µs", peer_name=beside.peer.told)
    async with beside.peer.side(broker, bare, sizes.drained) as side:
        our_s, peer_s = await in_turns(sizes.slices, ours, side)
    peer_us = _us(peer_s, sizes.drained)
    return figure(
        beside.name,
        _us(our_s, sizes.drained),
        "µs",
        peer=peer_us,
        peer_name=beside.peer.told,
        bound=None if beside.times is None else peer_us / beside.times,
    )


async def our_drains(client: OurClient, bare: JetStreamContext, messages: int) -> Side:
    """Attach to the one mailbox; what is returned drains so many messages from it."""
    queue, counted = client.queue, Counted()

    async def handler(batch: Batch) -> Outcome:
        counted.add(len(batch.deliveries))
        return Ack()

    async def drain() -> float:
        counted.expect(messages)
        await fill(bare, [_MAILBOX.topic], messages)
        began_s = time.perf_counter()
        await queue.unquiesce(_MAILBOX)
        await counted.reached()
        await queue.wait_idle(_MAILBOX)
        took_s = time.perf_counter() - began_s
        await queue.quiesce(_MAILBOX)
        return took_s

    await queue.subscribe_batch(_MAILBOX, handler, partition=_together, options=lambda: BatchOptions(max_events=_BATCH))
    await queue.quiesce(_MAILBOX)
    return drain


async def _bare_drain(bare: JetStreamContext, messages: int) -> float:
    await fill(bare, [_MAILBOX.topic], messages)
    durable = topics.durable_name(_MAILBOX.topic, _MAILBOX.group)
    subscription = await bare.pull_subscribe_bind(durable, topics.STREAM_AGENT)
    began_s, done = time.perf_counter(), 0
    while done < messages:
        fetched = await subscription.fetch(min(_BATCH, messages - done), timeout=_FETCH_TIMEOUT_S)
        await asyncio.gather(*(message.ack_sync(timeout=_ACK_TIMEOUT_S) for message in fetched))
        done += len(fetched)
    took_s = time.perf_counter() - began_s
    await subscription.unsubscribe()
    return took_s


async def _crowd(client: OurClient, numbers: range) -> None:
    """Further mailboxes on the stream, without mail."""
    calls = [partial(client.queue.ensure_subscription, _other(number)) for number in numbers]
    await many_at_once(calls, _CREATES_IN_FLIGHT)


def _other(number: int) -> Subscription:
    return inbox(f"other-{number}")


def _together(event: Event) -> str:
    return event.type


def _us(seconds: float, messages: int) -> float:
    return seconds / messages * 1e6


_NAMES: Final[Mapping[str, str]] = {
    "batch_1_us": "a 500-byte message in `subscribe_batch`, backlog, no-op handler, one consumer on the stream, synced",
    "batch_faststream_us": "the same, beside FastStream as documented (its acks are not confirmed)",
    "batch_taskiq_us": "the same, beside taskiq-nats as documented (its acks are not confirmed)",
    "batch_300_us": "the same, 300 consumers on the stream, synced",
    "batch_3000_us": "the same, 3,000 consumers on the stream, synced",
    "batch_unsynced_1_us": "a message in `subscribe_batch`, one consumer, writes synced every two minutes",
    "batch_unsynced_faststream_us": "the same, beside FastStream as documented",
    "batch_unsynced_taskiq_us": "the same, beside taskiq-nats as documented",
    "batch_unsynced_faststream_fast_us": "the same, beside FastStream at its fastest",
    "batch_unsynced_taskiq_fast_us": "the same, beside taskiq-nats at its fastest",
    "batch_unsynced_300_us": "the same, 300 consumers on the stream, writes synced every two minutes",
    "batch_unsynced_3000_us": "the same, 3,000 consumers on the stream, writes synced every two minutes",
}
MEASUREMENTS: Final = (Measurement("batches", _NAMES, _batches),)
