"""How long a node's idle seats are on the way to its peers after it was asked to end, as Ctrl-C asks."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from math import ceil
from pathlib import Path
from signal import SIGINT
from typing import Final

import uvloop

from benchmarks.figures import Figure, Measurement, Sizes, figure
from benchmarks.fleet_engines import Pace, dialling_node, fleet_engine, has_attached
from benchmarks.standing_broker import standing_broker
from crewlet.base import limits

__all__ = ["MEASUREMENTS"]

_GRACE_S: Final = 2.0
_LIFTED_BOUND_S: Final = 10.0
_STARTS_S: Final = 60.0
_LIFTED: Final[Pace] = {"SEAT_CLAIMS_PER_SWEEP": 1000}
_GIVES_NOTHING_BACK: Final[Pace] = {**_LIFTED, "SEAT_RELEASES_PER_SWEEP": 0}
"""Of the node that is stopped, so that it has every seat when its peers are there. Its drain knows neither bound."""


def _stops(sizes: Sizes) -> Sequence[Figure]:
    sweeps = ceil(sizes.stopped_seats / (limits.SEAT_CLAIMS_PER_SWEEP * sizes.survivors))
    shipped_s = uvloop.run(_stop_s(sizes, {}))
    lifted_s = uvloop.run(_stop_s(sizes, _LIFTED))
    return [
        figure("stop_to_peers_s", shipped_s, "s", bound=sweeps * limits.SEAT_SWEEP_EVERY_S + _GRACE_S),
        figure("stop_to_peers_lifted_s", lifted_s, "s", bound=_LIFTED_BOUND_S),
    ]


async def _stop_s(sizes: Sizes, survivors: Pace) -> float:
    """From the signal to the last of the seats at its new node."""
    seats = sizes.stopped_seats
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crewlet-bench-")))
        broker = await stack.enter_async_context(standing_broker())
        files = [
            await dialling_node(folder, broker, f"node-{number}", seats=seats, ttl_s=limits.LEASE_TTL_S)
            for number in range(sizes.survivors + 1)
        ]
        stopped = await stack.enter_async_context(fleet_engine(files[0], {**sizes.fleet_pace, **_GIVES_NOTHING_BACK}))
        await has_attached([stopped], seats, within_s=_STARTS_S)
        pace = {**sizes.fleet_pace, **survivors}
        peers = [await stack.enter_async_context(fleet_engine(each, pace, ready=False)) for each in files[1:]]
        await asyncio.gather(*(each.ready() for each in peers))
        began_s = time.perf_counter()
        stopped.signal(SIGINT)
        await has_attached(peers, seats, within_s=3 * limits.SEAT_SWEEP_EVERY_S * seats)
        return time.perf_counter() - began_s


MEASUREMENTS: Final = (
    Measurement(
        "graceful_stops",
        {
            "stop_to_peers_s": "Ctrl-C of a node with 50 idle seats to the last of them at work on one of 2 peers",
            "stop_to_peers_lifted_s": "the same where the peers may claim any number of seats in a sweep",
        },
        _stops,
    ),
)
