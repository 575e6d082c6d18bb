"""The queue's figures, on a broker that syncs each write as shipped, and on one that syncs as brokers do by default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import uvloop

from benchmarks import queue_latency
from benchmarks.figures import Figure, Measurement, Sizes, figure
from crewlet.testing.brokers import running_broker

__all__ = ["MEASUREMENTS"]

_RATIO_BOUND: Final = 1.5
_BROKERS_OWN_INTERVAL_S: Final = 120.0
_SYNCING: Final = {"publish_to_handler_ms": None, "publish_to_handler_unsynced_ms": _BROKERS_OWN_INTERVAL_S}


def _queue(sizes: Sizes) -> Sequence[Figure]:
    return [
        uvloop.run(_publish_to_handler(name, sync_interval_s, sizes.publishes))
        for name, sync_interval_s in _SYNCING.items()
    ]


async def _publish_to_handler(name: str, sync_interval_s: float | None, rounds: int) -> Figure:
    async with running_broker(sync_interval_s=sync_interval_s) as broker:
        found = await queue_latency.measure(broker, rounds=rounds, warm_up=max(rounds // 10, 1))
    bare_ms = found["bare_p50_us"] / 1000
    return figure(
        name,
        found["ours_p50_us"] / 1000,
        "ms",
        floor=bare_ms,
        floor_name="nats-py on the same broker: publish to fetch",
        bound=_RATIO_BOUND * bare_ms,
    )


MEASUREMENTS = (
    Measurement(
        "queue",
        {
            "publish_to_handler_ms": "publish to the handler's start, idle, each write synced (`stream.sync: always`)",
            "publish_to_handler_unsynced_ms": "the same, writes synced every two minutes",
        },
        _queue,
    ),
)
