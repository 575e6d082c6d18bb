"""What a message costs one at a time over many inboxes, beside the bare client's pull loops on the same mailboxes.

An attachment asks once more than it is answered, a bare loop ends with its last message: there are so many messages for
each inbox that this weighs little.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

import uvloop
from nats.js import JetStreamContext

from benchmarks.figures import Figure, Measurement, Sizes, figure
from benchmarks.queue_peers import FASTSTREAM_INBOXES, faststream_inboxes
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
from crewlet.queue import Ack, Delivery, Outcome, Subscription
from crewlet.testing.brokers import running_broker

__all__ = ["MEASUREMENTS", "our_inboxes"]

_FETCH_TIMEOUT_S: Final = 5
_ACK_TIMEOUT_S: Final = 10
_ATTACHED_AT_ONCE: Final = 32
_TIMES_FASTSTREAM: Final = 1.5
_BARE: Final = "nats-py: as many pull loops, fetch(1) and a confirmed ack, same mailboxes"


def _singles(sizes: Sizes) -> Sequence[Figure]:
    synced = uvloop.run(_measure(sizes, "inboxes", None, None))
    return [*synced, *uvloop.run(_measure(sizes, "inboxes_unsynced", BROKERS_OWN_INTERVAL_S, _TIMES_FASTSTREAM))]


async def _measure(sizes: Sizes, prefix: str, sync_interval_s: float | None, times: float | None) -> Sequence[Figure]:
    messages = sizes.inboxes * sizes.inbox_messages
    mailboxes = [inbox(f"worker-{number}") for number in range(sizes.inboxes)]
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(sync_interval_s=sync_interval_s))
        bare = await stack.enter_async_context(bare_client(broker))
        client = await stack.enter_async_context(our_client(broker))
        ours = await our_inboxes(client, bare, mailboxes, sizes.inbox_messages)
        sides = [ours, await _bare_inboxes(bare, mailboxes, sizes.inbox_messages)]
        if FASTSTREAM_INBOXES.installed:
            side = faststream_inboxes(broker, bare, sizes.inboxes, sizes.inbox_messages)
            sides.append(await stack.enter_async_context(side))
        taken = [seconds / messages * 1e6 for seconds in await in_turns(sizes.slices, *sides)]
    our_us, floor_us = taken[:2]
    peer_us = taken[2] if len(taken) > 2 else None
    return [
        figure(f"{prefix}_us", our_us, "µs", floor=floor_us, floor_name=_BARE, bound=floor_us),
        figure(
            f"{prefix}_faststream_us",
            our_us,
            "µs",
            peer=peer_us,
            peer_name=FASTSTREAM_INBOXES.told,
            bound=None if peer_us is None or times is None else peer_us / times,
        ),
    ]


async def our_inboxes(client: OurClient, bare: JetStreamContext, mailboxes: Sequence[Subscription], each: int) -> Side:
    """Attach to all of them; what is returned works ``each`` waiting messages of every one."""
    queue, counted = client.queue, Counted()

    async def handler(_delivery: Delivery) -> Outcome:
        counted.add()
        return Ack()

    async def attach(mailbox: Subscription) -> None:
        await queue.subscribe(mailbox, handler)
        await queue.quiesce(mailbox)

    async def work() -> float:
        counted.expect(each * len(mailboxes))
        await fill(bare, [mailbox.topic for mailbox in mailboxes], each)
        began_s = time.perf_counter()
        for mailbox in mailboxes:
            await queue.unquiesce(mailbox)
        await counted.reached()
        for mailbox in mailboxes:
            await queue.wait_idle(mailbox)
        took_s = time.perf_counter() - began_s
        await asyncio.gather(*(queue.quiesce(mailbox) for mailbox in mailboxes))
        return took_s

    await many_at_once([partial(attach, mailbox) for mailbox in mailboxes], _ATTACHED_AT_ONCE)
    return work


async def _bare_inboxes(bare: JetStreamContext, mailboxes: Sequence[Subscription], each: int) -> Side:
    durables = [topics.durable_name(mailbox.topic, mailbox.group) for mailbox in mailboxes]
    subscriptions = [await bare.pull_subscribe_bind(durable, topics.STREAM_AGENT) for durable in durables]

    async def loop(subscription: JetStreamContext.PullSubscription) -> None:
        for _ in range(each):
            (message,) = await subscription.fetch(1, timeout=_FETCH_TIMEOUT_S)
            await message.ack_sync(timeout=_ACK_TIMEOUT_S)

    async def work() -> float:
        await fill(bare, [mailbox.topic for mailbox in mailboxes], each)
        began_s = time.perf_counter()
        await asyncio.gather(*(loop(subscription) for subscription in subscriptions))
        return time.perf_counter() - began_s

    return work


MEASUREMENTS: Final = (
    Measurement(
        "inboxes",
        {
            "inboxes_us": "a message one at a time over 500 inboxes, no-op handlers, synced",
            "inboxes_faststream_us": "the same, beside 500 FastStream subscribers (their acks are not confirmed)",
            "inboxes_unsynced_us": "a message one at a time over 500 inboxes, writes synced every two minutes",
            "inboxes_unsynced_faststream_us": "the same, beside 500 FastStream subscribers",
        },
        _singles,
    ),
)
