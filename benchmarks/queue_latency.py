"""How long a message takes from publish to the start of its idle handler, beside the bare client's fetch.

Both sides stand on one broker, one stream and one kind of mailbox, take turns message by message, and are alone on
their connection. A side's time runs from the call of its publish to its first line of work.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from nats.aio.client import Client
from nats.js import JetStreamContext

from crewlet import topics
from crewlet.backends.nats import EmbeddedBroker, JetStream, connect
from crewlet.backends.nats.queue import JetStreamQueue
from crewlet.events import Event, encode
from crewlet.queue import Ack, Delivery, Outcome, Subscription
from crewlet.testing.brokers import running_broker

__all__ = ["measure"]

_FETCH_TIMEOUT_S = 5


async def measure(broker: EmbeddedBroker, *, rounds: int = 500, warm_up: int = 50) -> dict[str, float]:
    """Medians and 95th percentiles of both sides in microseconds, and ``ratio``: our median over the bare client's."""
    ours, bare = await _ours(broker), await _bare(broker)
    our_times: list[float] = []
    bare_times: list[float] = []
    try:
        for number in range(rounds + warm_up):
            our_us, bare_us = await ours.once(number), await bare.once(number)
            if number >= warm_up:
                our_times.append(our_us)
                bare_times.append(bare_us)
    finally:
        await ours.close()
        await bare.close()
    return {
        "ours_p50_us": statistics.median(our_times),
        "ours_p95_us": _p95(our_times),
        "bare_p50_us": statistics.median(bare_times),
        "bare_p95_us": _p95(bare_times),
        "ratio": statistics.median(our_times) / statistics.median(bare_times),
    }


class _Side:
    def __init__(self, once: Callable[[int], Awaitable[float]], close: Callable[[], Awaitable[None]]) -> None:
        self.once = once
        self.close = close


async def _ours(broker: EmbeddedBroker) -> _Side:
    wire = await connect(broker.urls, seed=broker.seed, name="ours")
    api = JetStream(wire)
    queue = JetStreamQueue(wire, api, node="ours", storage=broker.storage)
    await queue.start()
    mailbox = Subscription(topics.agent_inbox("ours"), topics.inbox_group("ours"))
    clock = time.perf_counter
    started: asyncio.Queue[float] = asyncio.Queue(1)

    async def handler(_delivery: Delivery) -> Outcome:
        started.put_nowait(clock())
        return Ack()

    async def once(number: int) -> float:
        event = _event(f"ours-{number}")
        began = clock()
        await queue.publish(mailbox.topic, event)
        took = await started.get() - began
        await queue.wait_idle(mailbox)
        # The next round begins once the attachment waits again, as the bare side's fetch does.
        await _asking(api, mailbox)
        return took * 1e6

    async def close() -> None:
        await queue.close()
        await wire.close()

    await queue.subscribe(mailbox, handler)
    await _asking(api, mailbox)
    return _Side(once, close)


async def _bare(broker: EmbeddedBroker) -> _Side:
    client = Client()
    await client.connect(broker.url, nkeys_seed_str=broker.seed)
    stream: JetStreamContext = client.jetstream()  # pyright: ignore[reportUnknownMemberType]
    mailbox = Subscription(topics.agent_inbox("bare"), topics.inbox_group("bare"))
    wire = await connect(broker.urls, seed=broker.seed, name="bare")
    api = JetStream(wire)
    queue = JetStreamQueue(wire, api, node="bare", storage=broker.storage)
    await queue.start()
    await queue.ensure_subscription(mailbox)
    durable = topics.durable_name(mailbox.topic, mailbox.group)
    subscription = await stream.pull_subscribe_bind(durable, topics.STREAM_AGENT)
    clock = time.perf_counter

    async def work() -> float:
        (message,) = await subscription.fetch(1, timeout=_FETCH_TIMEOUT_S)
        at = clock()
        await message.ack_sync()
        return at

    async def once(number: int) -> float:
        payload = encode(_event(f"bare-{number}"))
        worker = asyncio.get_running_loop().create_task(work())
        await _asking(api, mailbox)
        began = clock()
        await stream.publish(mailbox.topic, payload, headers={"Nats-Msg-Id": f"bare-{number}"})
        return (await worker - began) * 1e6

    async def close() -> None:
        await client.close()
        await queue.close()
        await wire.close()

    return _Side(once, close)


async def _asking(api: JetStream, mailbox: Subscription) -> None:
    """Return once a request for this mailbox waits at the broker and nothing is left of the last message."""
    durable = topics.durable_name(mailbox.topic, mailbox.group)
    async with asyncio.timeout(_FETCH_TIMEOUT_S):
        while True:
            info = await api.consumer_info(topics.STREAM_AGENT, durable)
            if info is not None and info.num_waiting and not info.num_ack_pending:
                return


def _event(event_id: str) -> Event:
    return Event(id=event_id, type="probe", timestamp=datetime.now(UTC), payload={"text": "x" * 400})


def _p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


async def _main() -> None:
    for interval_s, label in ((60.0, "default sync"), (None, "sync always")):
        async with running_broker(sync_interval_s=interval_s) as broker:
            figures = await measure(broker)
            print(label, {name: round(value, 2) for name, value in figures.items()})


if __name__ == "__main__":
    import uvloop

    uvloop.run(_main())
