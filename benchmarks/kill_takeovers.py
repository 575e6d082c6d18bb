"""How long mail is out of reach after its holder was killed with -9: to the handler of its successor, beside peers.

The message is one that the dead process was working on. The kills are spread evenly over a sweep's time.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from signal import SIGKILL
from typing import Any, Final

import uvloop

from benchmarks.companies import handle
from benchmarks.figures import Figure, Measurement, Sizes, figure, median
from benchmarks.fleet_engines import Pace, dialling_node, fleet_engine, has_attached, sent_to, turn_began
from benchmarks.killed_peers import FASTSTREAM, TASKIQ, Worked, peer_takeovers_s
from benchmarks.queue_peers import Package
from benchmarks.standing_broker import standing_broker
from crewlet.base import limits
from crewlet.base.clock import SystemClock

__all__ = ["MEASUREMENTS"]

_GRACE_S: Final = 1.0
_STARTS_S: Final = 30.0
_GIVES_NOTHING_BACK: Final[Pace] = {"SEAT_CLAIMS_PER_SWEEP": 1000, "SEAT_RELEASES_PER_SWEEP": 0}
"""Of the node that is killed, so that it has every seat from the start and keeps it beside its peers."""


def _takeovers(sizes: Sizes) -> Sequence[Figure]:
    peers = [uvloop.run(_peer(peer, sizes)) for peer in (FASTSTREAM, TASKIQ)]
    ours = uvloop.run(_measure(sizes))
    bound_s = sizes.takeover_ttl_s + limits.SEAT_SWEEP_EVERY_S + _GRACE_S
    return [
        *_figures("kill_to_successor", ours, peers[0], bound_s),
        *_figures("kill_to_successor_taskiq", ours, peers[1], bound_s),
    ]


def _figures(name: str, ours: Sequence[float], peer: Worked, bound_s: float) -> list[Figure]:
    return [
        figure(
            f"{name}{suffix}_s",
            of(ours),
            "s",
            peer=of(peer.took_s) if peer.took_s else None,
            peer_name=peer.told,
            bound=bound_s,
        )
        for suffix, of in (("", median), ("_worst", max))
    ]


def _peer(peer: Package, sizes: Sizes) -> Coroutine[Any, Any, Worked]:
    return peer_takeovers_s(peer, sizes.killed_peers, _spread_s(sizes), ack_wait_s=sizes.peer_ack_wait_s)


def _spread_s(sizes: Sizes) -> float:
    return sizes.fleet_pace.get("SEAT_SWEEP_EVERY_S", limits.SEAT_SWEEP_EVERY_S)


async def _measure(sizes: Sizes) -> list[float]:
    pauses_s = [number * _spread_s(sizes) / sizes.takeovers for number in range(sizes.takeovers)]
    return [await _takeover_s(pause_s, sizes) for pause_s in pauses_s]


async def _takeover_s(pause_s: float, sizes: Sizes) -> float:
    """One fleet, one kill ``pause_s`` after the message was taken up."""
    seats = sizes.survivors * limits.SEAT_CLAIMS_PER_SWEEP
    ttl_s, pace = sizes.takeover_ttl_s, sizes.fleet_pace
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crewlet-bench-")))
        broker = await stack.enter_async_context(standing_broker())
        files = [
            await dialling_node(folder, broker, f"node-{number}", seats=seats, ttl_s=ttl_s)
            for number in range(sizes.survivors + 1)
        ]
        killed = await stack.enter_async_context(fleet_engine(files[0], {**pace, **_GIVES_NOTHING_BACK}))
        await has_attached([killed], seats, within_s=_STARTS_S)
        survivors = [await stack.enter_async_context(fleet_engine(each, pace, ready=False)) for each in files[1:]]
        await asyncio.gather(*(each.ready() for each in survivors))
        trace_id = await sent_to(handle(0), survivors[0])
        await turn_began(trace_id, [killed], within_s=_STARTS_S)
        await asyncio.sleep(pause_s)
        killed_at = clock.now()
        killed.signal(SIGKILL)
        await killed.ended()
        _where, began_at = await turn_began(trace_id, survivors, within_s=_STARTS_S + ttl_s)
        return (began_at - killed_at).total_seconds()


MEASUREMENTS: Final = (
    Measurement(
        "kill_takeovers",
        {
            "kill_to_successor_s": "`kill -9` of a node to its successor's handler with the very message it worked on:"
            " 8 seats, 2 survivors, lease TTL 6 s",
            "kill_to_successor_worst_s": "the same, the worst run",
            "kill_to_successor_taskiq_s": "the same, beside taskiq-nats",
            "kill_to_successor_taskiq_worst_s": "the same, the worst run beside taskiq-nats's worst",
        },
        _takeovers,
    ),
)
