"""What the mailboxes of 1,000 seats cost: made, found again by a second node, and attached without mail.

A company's first start makes three durables a seat. Each run has a new broker, so that both sides meet an empty one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

import psutil
import uvloop
from nats.js import JetStreamContext, api

from benchmarks.figures import Figure, Measurement, Sizes, figure, median
from benchmarks.queue_rig import OurClient, bare_client, inbox, many_at_once, our_client
from crewlet import topics
from crewlet.backends.nats import EmbeddedBroker
from crewlet.base import limits
from crewlet.queue import Ack, Delivery, Outcome, QueueConfig, Subscription
from crewlet.testing.brokers import running_broker

__all__ = ["MEASUREMENTS"]

_IN_FLIGHT: Final = 32
_TIMES_BARE: Final = 1.3
_AGAIN_BOUND_S: Final = 1.0
_IDLE_BOUND_PERCENT: Final = 5.0
_BARE: Final = "nats-py: as many add_consumer, 32 in flight"


def _mailboxes(sizes: Sizes) -> Sequence[Figure]:
    runs = [uvloop.run(_run(sizes.mailbox_seats, number)) for number in range(sizes.mailbox_runs)]
    made_s, again_s, bare_s = (median([run[index] for run in runs]) for index in range(3))
    return [
        figure("mailboxes_made_s", made_s, "s", floor=bare_s, floor_name=_BARE, bound=_TIMES_BARE * bare_s),
        figure("mailboxes_again_s", again_s, "s", bound=_AGAIN_BOUND_S),
    ]


async def _run(seats: int, number: int) -> tuple[float, float, float]:
    wanted = [mailbox for seat in range(seats) for mailbox in _of_seat(f"worker-{seat}")]
    if number % 2:
        bare_s = await _made_bare(wanted)
        return *await _made(wanted), bare_s
    made = await _made(wanted)
    return *made, await _made_bare(wanted)


async def _made(wanted: Sequence[Subscription]) -> tuple[float, float]:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker())
        first = await stack.enter_async_context(our_client(broker, "first"))
        made_s = await _ensured(first, wanted)
        second = await stack.enter_async_context(our_client(broker, "second"))
        return made_s, await _ensured(second, wanted)


async def _ensured(client: OurClient, wanted: Sequence[Subscription]) -> float:
    began_s = time.perf_counter()
    await client.queue.ensure_subscriptions(wanted)
    return time.perf_counter() - began_s


async def _made_bare(wanted: Sequence[Subscription]) -> float:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker())
        bare = await stack.enter_async_context(bare_client(broker))
        await stack.enter_async_context(our_client(broker))  # it makes the stream
        calls = [partial(_add, bare, each) for each in wanted]
        began_s = time.perf_counter()
        await many_at_once(calls, _IN_FLIGHT)
        return time.perf_counter() - began_s


async def _add(bare: JetStreamContext, mailbox: Subscription) -> None:
    settings = QueueConfig()
    config = api.ConsumerConfig(
        durable_name=topics.durable_name(mailbox.topic, mailbox.group),
        deliver_policy=api.DeliverPolicy.ALL,
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=settings.ack_wait_s,
        max_deliver=settings.max_deliver,
        max_ack_pending=limits.ACK_PENDING_MAX,
        filter_subject=mailbox.topic,
        metadata={"topic": mailbox.topic, "group": mailbox.group},
    )
    await bare.add_consumer(topics.STREAM_AGENT, config)  # pyright: ignore[reportUnknownMemberType]


def _of_seat(handle: str) -> tuple[Subscription, ...]:
    return (
        inbox(handle),
        Subscription(topics.agent_control(handle), topics.control_group(handle)),
        Subscription(topics.agent_reflect(handle), topics.reflect_group(handle)),
    )


def _idle(sizes: Sizes) -> Sequence[Figure]:
    ours, brokers = uvloop.run(_idle_percent(sizes.idle_inboxes, sizes.idle_s))
    return [
        figure("idle_inboxes_cpu_percent", ours, "%", bound=_IDLE_BOUND_PERCENT),
        figure("idle_inboxes_broker_cpu_percent", brokers, "%"),
    ]


async def _idle_percent(inboxes: int, seconds: float) -> tuple[float, float]:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker())
        client = await stack.enter_async_context(our_client(broker))
        calls = [partial(client.queue.subscribe, inbox(f"idle-{number}"), _handler) for number in range(inboxes)]
        await many_at_once(calls, _IN_FLIGHT)
        # None asks for the first time, and what is done now and then, such as asking the broker of each, is being done.
        await asyncio.sleep(seconds)
        own_s, broker_s, began_s = time.process_time(), _cpu_s(broker), time.perf_counter()
        await asyncio.sleep(seconds)
        took_s = time.perf_counter() - began_s
        return 100 * (time.process_time() - own_s) / took_s, 100 * (_cpu_s(broker) - broker_s) / took_s


def _cpu_s(broker: EmbeddedBroker) -> float:
    times = psutil.Process(broker.pid).cpu_times()
    return times.user + times.system


async def _handler(_delivery: Delivery) -> Outcome:
    return Ack()


MEASUREMENTS: Final = (
    Measurement(
        "mailboxes",
        {
            "mailboxes_made_s": "the mailboxes of 1,000 seats (3,000 durables) made, synced",
            "mailboxes_again_s": "the same found again and read back by a second node",
        },
        _mailboxes,
    ),
    Measurement(
        "idle_inboxes",
        {
            "idle_inboxes_cpu_percent": "the processor time of 1,000 attached inboxes without mail, of one core",
            "idle_inboxes_broker_cpu_percent": "the broker's own for the same",
        },
        _idle,
    ),
)
