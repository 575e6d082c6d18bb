"""How long work takes from a handler that defers it to the successor's handler, beside a bare nak.

Both sides have two clients on one mailbox. The successor already waits when the holder lets go.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

import uvloop
from nats.js import JetStreamContext

from benchmarks.figures import Figure, Measurement, Sizes, figure
from benchmarks.queue_rig import BROKERS_OWN_INTERVAL_S, OurClient, Side, bare_client, fill, inbox, our_client
from crewlet import topics
from crewlet.backends.nats import JetStream
from crewlet.queue import Ack, Defer, Delivery, Outcome, Subscription
from crewlet.testing.brokers import running_broker

__all__ = ["MEASUREMENTS"]

_DEADLINE_S: Final = 5
_TIMES_BARE: Final = 2.0
_BARE: Final = "nats-py: nak to another client's waiting fetch"
_SYNCING: Final = {"hand_over_ms": None, "hand_over_unsynced_ms": BROKERS_OWN_INTERVAL_S}


def _hand_overs(sizes: Sizes) -> Sequence[Figure]:
    return [uvloop.run(_measure(name, interval_s, sizes.hand_overs)) for name, interval_s in _SYNCING.items()]


async def _measure(name: str, sync_interval_s: float | None, rounds: int) -> Figure:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(sync_interval_s=sync_interval_s))
        holder = await stack.enter_async_context(our_client(broker, "holder"))
        successor = await stack.enter_async_context(our_client(broker, "successor"))
        bare_holder = await stack.enter_async_context(bare_client(broker))
        bare_successor = await stack.enter_async_context(bare_client(broker))
        ours = await _ours(holder, successor, bare_holder)
        bare = await _bare(holder, bare_holder, bare_successor)
        our_s: list[float] = []
        bare_s: list[float] = []
        warm_up = max(rounds // 10, 1)
        for number in range(rounds + warm_up):
            took = await ours(), await bare()
            if number >= warm_up:
                our_s.append(took[0])
                bare_s.append(took[1])
    floor_ms = statistics.median(bare_s) * 1000
    value_ms = statistics.median(our_s) * 1000
    return figure(name, value_ms, "ms", floor=floor_ms, floor_name=_BARE, bound=_TIMES_BARE * floor_ms)


async def _ours(holder: OurClient, successor: OurClient, publisher: JetStreamContext) -> Side:
    mailbox = inbox("handed-over")
    times: asyncio.Queue[float] = asyncio.Queue()

    async def let_go(_delivery: Delivery) -> Outcome:
        await successor.queue.unquiesce(mailbox)
        await _waiting(successor.api, mailbox, held=1)
        times.put_nowait(time.perf_counter())
        return Defer("handed over")

    async def take_over(_delivery: Delivery) -> Outcome:
        times.put_nowait(time.perf_counter())
        return Ack()

    async def once() -> float:
        await fill(publisher, [mailbox.topic], 1)
        async with asyncio.timeout(_DEADLINE_S):
            left_at, arrived_at = await times.get(), await times.get()
        await successor.queue.quiesce(mailbox)
        await successor.queue.wait_idle(mailbox)
        await holder.queue.wait_idle(mailbox)
        await holder.queue.unquiesce(mailbox)
        await _waiting(holder.api, mailbox, held=0)
        return arrived_at - left_at

    await successor.queue.subscribe(mailbox, take_over)
    await successor.queue.quiesce(mailbox)
    await holder.queue.subscribe(mailbox, let_go)
    await _waiting(holder.api, mailbox, held=0)
    return once


async def _bare(maker: OurClient, holder: JetStreamContext, successor: JetStreamContext) -> Side:
    mailbox = inbox("bare")
    await maker.queue.ensure_subscription(mailbox)
    durable = topics.durable_name(mailbox.topic, mailbox.group)
    holding = await holder.pull_subscribe_bind(durable, topics.STREAM_AGENT)
    taking = await successor.pull_subscribe_bind(durable, topics.STREAM_AGENT)

    async def take_over() -> float:
        (message,) = await taking.fetch(1, timeout=_DEADLINE_S)
        at = time.perf_counter()
        await message.ack_sync()
        return at

    async def once() -> float:
        await fill(holder, [mailbox.topic], 1)
        (message,) = await holding.fetch(1, timeout=_DEADLINE_S)
        taken = asyncio.get_running_loop().create_task(take_over())
        await _waiting(maker.api, mailbox, held=1)
        began = time.perf_counter()
        await message.nak()
        return await taken - began

    return once


async def _waiting(api: JetStream, mailbox: Subscription, *, held: int) -> None:
    """Return once a request waits at the broker and so many deliveries are out."""
    durable = topics.durable_name(mailbox.topic, mailbox.group)
    async with asyncio.timeout(_DEADLINE_S):
        while True:
            info = await api.consumer_info(topics.STREAM_AGENT, durable)
            if info is not None and info.num_waiting and info.num_ack_pending == held:
                return


MEASUREMENTS: Final = (
    Measurement(
        "hand_overs",
        {
            "hand_over_ms": "a handler's `Defer` to the successor's handler, synced",
            "hand_over_unsynced_ms": "the same, writes synced every two minutes",
        },
        _hand_overs,
    ),
)
