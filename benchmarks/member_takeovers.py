"""The same kill where each node runs a member of the brokers' cluster: the broker dies with its node, and may have led.

Writes wait until the members that are left have elected; the leases are long enough to outlast that.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from signal import SIGKILL
from typing import Final

import uvloop

from benchmarks.companies import handle
from benchmarks.figures import Figure, Measurement, Sizes, figure
from benchmarks.fleet_engines import fleet_engine, has_attached, member_nodes, sent_to, turn_began
from crewlet.base import limits
from crewlet.base.clock import SystemClock
from crewlet.testing.engines import Engine

__all__ = ["MEASUREMENTS"]

_SEATS: Final = 8
_GRACE_S: Final = 1.0
_STARTS_S: Final = 180.0
_TAKEN_S: Final = 60.0


def _member_kills(sizes: Sizes) -> Sequence[Figure]:
    took_s = [uvloop.run(_takeover_s(number, sizes)) for number in range(sizes.member_kills)]
    bound_s = sizes.member_ttl_s + limits.SEAT_SWEEP_EVERY_S + _GRACE_S
    return [figure("member_kill_to_successor_worst_s", max(took_s), "s", bound=bound_s)]


async def _takeover_s(number: int, sizes: Sizes) -> float:
    """A cluster of its own; whoever has the seat is killed, each time at another moment of a sweep."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crewlet-bench-")))
        files = await member_nodes(folder, seats=_SEATS, ttl_s=sizes.member_ttl_s)
        engines = [
            await stack.enter_async_context(fleet_engine(each, sizes.fleet_pace, ready=False))
            for each in files.values()
        ]
        await asyncio.gather(*(each.ready(timeout_s=_STARTS_S) for each in engines))
        await has_attached(engines, _SEATS, within_s=_TAKEN_S)
        trace_id = await sent_to(handle(0), engines[0])
        killed, _at = await turn_began(trace_id, engines, within_s=_TAKEN_S)
        await asyncio.sleep(number * limits.SEAT_SWEEP_EVERY_S / sizes.member_kills)
        killed_at = clock.now()
        killed.signal(SIGKILL)
        await killed.ended()
        _where, began_at = await turn_began(trace_id, _others(engines, killed), within_s=_TAKEN_S)
        return (began_at - killed_at).total_seconds()


def _others(engines: Sequence[Engine], killed: Engine) -> list[Engine]:
    return [each for each in engines if each is not killed]


MEASUREMENTS: Final = (
    Measurement(
        "member_takeovers",
        {
            "member_kill_to_successor_worst_s": "the same of three nodes whose embedded brokers are one cluster: lease"
            " TTL 15 s, no tool servers, the worst run",
        },
        _member_kills,
    ),
)
