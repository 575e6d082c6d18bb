"""How long a large company takes to be divided over nodes that start together with nothing held."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from math import ceil
from pathlib import Path
from typing import Final

import uvloop

from benchmarks.figures import Figure, Measurement, Sizes, figure
from benchmarks.fleet_engines import dialling_node, fleet_engine, has_attached, held
from benchmarks.standing_broker import standing_broker
from crewlet.base import limits
from crewlet.testing.waiting import wait_until

__all__ = ["MEASUREMENTS"]

_TIMES_ALLOWED: Final = 1.1
_STARTS_S: Final = 180.0
_ALLOWED: Final = "what the claim limit allows: 4 seats a node and sweep"


def _cold_starts(sizes: Sizes) -> Sequence[Figure]:
    sweeps = ceil(sizes.cold_seats / (limits.SEAT_CLAIMS_PER_SWEEP * sizes.cold_nodes))
    allowed_s = sweeps * sizes.cold_sweep_s
    took_s = uvloop.run(_balanced_s(sizes, give_up_s=_STARTS_S + 3 * allowed_s))
    bound_s = _TIMES_ALLOWED * allowed_s
    return [figure("cold_start_s", took_s, "s", floor=allowed_s, floor_name=_ALLOWED, bound=bound_s)]


async def _balanced_s(sizes: Sizes, *, give_up_s: float) -> float:
    """From the fleet's first claim, once its mailboxes are made, until each node runs its share."""
    pace = {**sizes.fleet_pace, "SEAT_SWEEP_EVERY_S": sizes.cold_sweep_s}
    share = sizes.cold_seats // sizes.cold_nodes
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crewlet-bench-")))
        broker = await stack.enter_async_context(standing_broker())
        files = [
            await dialling_node(folder, broker, f"node-{number}", seats=sizes.cold_seats, ttl_s=limits.LEASE_TTL_S)
            for number in range(sizes.cold_nodes)
        ]
        nodes = [await stack.enter_async_context(fleet_engine(each, pace, ready=False)) for each in files]
        await has_attached(nodes, 1, within_s=_STARTS_S)
        began_s = time.perf_counter()
        await wait_until(
            lambda: all(held(node) == share for node in nodes), what="an even division", timeout_s=give_up_s
        )
        return time.perf_counter() - began_s


MEASUREMENTS: Final = (
    Measurement(
        "cold_starts",
        {"cold_start_s": "1,000 seats from the first claim to divided over four nodes, a sweep every 2 s"},
        _cold_starts,
    ),
)
