"""The peers' time from ``kill -9`` of a worker to another worker's handler having the message that the dead one held.

Two workers share one durable pull consumer, each as the peer's documentation sets it up: the broker's own ``ack_wait``
of 30 s brings the message back.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.processes import Watched
from benchmarks.queue_peers import Package
from benchmarks.standing_broker import StandingBroker, standing_broker

__all__ = ["FASTSTREAM", "TASKIQ", "Worked", "peer_takeovers_s"]

_WORKER: Final = Path(__file__).with_name("peer_worker.py")
_PATIENCE_S: Final = 60.0
_READY: Final = "ready"
_GIVEN: Final = "given"
_LOOK_EVERY_S: Final = 0.02

FASTSTREAM: Final = Package("faststream", "FastStream, two workers, PullSub(), the broker's ack_wait")
TASKIQ: Final = Package("taskiq_nats", "taskiq-nats, two workers, pull based, the broker's ack_wait")


@dataclass(frozen=True, slots=True)
class Worked:
    """What each run took, in seconds, and the peer's name; nothing where it is not installed."""

    told: str
    took_s: Sequence[float]


async def peer_takeovers_s(peer: Package, runs: int, spread_s: float, *, ack_wait_s: float | None = None) -> Worked:
    """All runs side by side, since they only wait; the kills are spread as ours are. Above a minute counts as that."""
    if not peer.installed:
        return Worked(peer.told, ())
    pauses_s = [number * spread_s / runs for number in range(runs)]
    async with standing_broker() as broker:
        took_s = await asyncio.gather(
            *(
                asyncio.to_thread(_takeover_s, peer, broker, f"peer-{number}", pause_s, ack_wait_s)
                for number, pause_s in enumerate(pauses_s)
            )
        )
    late = sum(each >= _PATIENCE_S for each in took_s)
    return Worked(f"{peer.told}, {late} of {runs} not within {_PATIENCE_S:g} s" if late else peer.told, took_s)


def _takeover_s(peer: Package, broker: StandingBroker, name: str, pause_s: float, ack_wait_s: float | None) -> float:
    command = [sys.executable, str(_WORKER), peer.package, broker.url_with_token, name, str(ack_wait_s or "")]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crewlet-bench-")))
        workers = [stack.enter_context(Watched(command, cwd=folder)) for _ in range(2)]
        for worker in workers:
            worker.line(_READY)
        workers[0].tell("send\n")
        holder, successor = _given_first(*workers)
        time.sleep(pause_s)
        killed_s = holder.kill()
        given_s = successor.heard_s(_GIVEN, within_s=_PATIENCE_S)
        return _PATIENCE_S if given_s is None else given_s - killed_s


def _given_first(one: Watched, other: Watched) -> tuple[Watched, Watched]:
    """The worker that has the message, and the one that has not. Raises ``TimeoutError``."""
    for _ in range(int(_PATIENCE_S / _LOOK_EVERY_S)):
        if one.heard_s(_GIVEN, within_s=_LOOK_EVERY_S) is not None:
            return one, other
        if other.heard_s(_GIVEN, within_s=0) is not None:
            return other, one
    raise TimeoutError("no worker was given the message")
