"""What a publish with one listener costs beside the bare client's, to the same mailbox, 64 in flight and alone."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final

import uvloop

from benchmarks.figures import Figure, Measurement, Sizes, figure
from benchmarks.queue_rig import (
    BROKERS_OWN_INTERVAL_S,
    bare_client,
    event_of,
    in_turns,
    inbox,
    many_at_once,
    our_client,
)
from crewlet import topics
from crewlet.backends.nats.queue_publisher import message_id
from crewlet.events import Event, encode
from crewlet.testing.brokers import running_broker

__all__ = ["MEASUREMENTS"]

_IN_FLIGHT: Final = 64
_ALONE_SHARE: Final = 8
"""One in flight takes several times as long: so much fewer of them."""
_BARE_SHARE: Final = 0.8
_MAILBOX: Final = inbox("published")
_SYNCING: Final = {"publish": None, "publish_unsynced": BROKERS_OWN_INTERVAL_S}
_BARE: Final = "nats-py: publish with a message id, same mailbox"

_Publish = Callable[[Event], Awaitable[object]]


def _publishing(sizes: Sizes) -> Sequence[Figure]:
    return [each for name, interval_s in _SYNCING.items() for each in uvloop.run(_measure(sizes, name, interval_s))]


async def _measure(sizes: Sizes, name: str, sync_interval_s: float | None) -> Sequence[Figure]:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(sync_interval_s=sync_interval_s))
        bare = await stack.enter_async_context(bare_client(broker))
        client = await stack.enter_async_context(our_client(broker))
        await client.queue.ensure_subscription(_MAILBOX)
        client.queue.add_publish_listener(_listener)

        async def published_by_us(event: Event) -> None:
            await client.queue.publish(_MAILBOX.topic, event)

        async def published_bare(event: Event) -> None:
            headers = {"Nats-Msg-Id": message_id(_MAILBOX.topic, event)}
            await bare.publish(_MAILBOX.topic, encode(event), headers=headers)

        async def slice_of(publish: _Publish, number: int, in_flight: int) -> float:
            events = [event_of("published") for _ in range(number)]
            began_s = time.perf_counter()
            await many_at_once([_call(publish, event) for event in events], in_flight)
            took_s = time.perf_counter() - began_s
            await bare.purge_stream(topics.STREAM_AGENT)
            return took_s / number * 1e6

        async def both(number: int, in_flight: int) -> list[float]:
            return await in_turns(
                sizes.slices,
                lambda: slice_of(published_by_us, number, in_flight),
                lambda: slice_of(published_bare, number, in_flight),
            )

        together = await both(sizes.published, _IN_FLIGHT)
        alone = await both(max(sizes.published // _ALONE_SHARE, 1), 1)
    return [_figure(f"{name}_us", together), _figure(f"{name}_alone_us", alone)]


def _figure(name: str, taken: Sequence[float]) -> Figure:
    our_us, bare_us = taken
    return figure(name, our_us, "µs", floor=bare_us, floor_name=_BARE, bound=bare_us / _BARE_SHARE)


def _call(publish: _Publish, event: Event) -> Callable[[], Awaitable[object]]:
    return lambda: publish(event)


async def _listener(topic: str, event: Event) -> None:
    """Hears of each and does nothing."""


MEASUREMENTS: Final = (
    Measurement(
        "publishing",
        {
            "publish_us": "a publish with one listener, 64 in flight, synced",
            "publish_alone_us": "a publish with one listener, alone, synced",
            "publish_unsynced_us": "a publish with one listener, 64 in flight, writes synced every two minutes",
            "publish_unsynced_alone_us": "a publish with one listener, alone, writes synced every two minutes",
        },
        _publishing,
    ),
)
