"""Resident memory of an idle node, API included, and what each further seat adds to it."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.companies import write_company
from benchmarks.figures import Figure, Measurement, Sizes, figure, median
from benchmarks.processes import Watched, engine

__all__ = ["MEASUREMENTS"]

_IDLE_BOUND_MIB: Final = 120.0
_SEAT_BOUND_KIB: Final = 100.0
_MIB: Final = 1024 * 1024
_FLOOR: Final = Path(__file__).with_name("floors") / "bare_memory.py"


def _memory(sizes: Sizes) -> Sequence[Figure]:
    bare: list[float] = []
    idle: list[float] = []
    crowded: list[float] = []
    for _ in range(sizes.memory_runs):
        bare.append(_bare_bytes(sizes.settle_s))
        idle.append(_idle_bytes(sizes.seats, sizes.settle_s))
        crowded.append(_idle_bytes(sizes.seats + sizes.further_seats, sizes.settle_s))
    per_seat = (median(crowded) - median(idle)) / sizes.further_seats
    return [
        figure(
            "idle_rss_mib",
            median(idle) / _MIB,
            "MiB",
            floor=median(bare) / _MIB,
            floor_name="python with uvloop, nats-py, apsw and fastapi imported",
            bound=_IDLE_BOUND_MIB,
        ),
        figure("per_seat_kib", per_seat / 1024, "KiB", bound=_SEAT_BOUND_KIB),
    ]


def _idle_bytes(seats: int, settle_s: float) -> float:
    with (
        tempfile.TemporaryDirectory(prefix="crewlet-bench-") as directory,
        engine(write_company(Path(directory), seats=seats)) as process,
    ):
        process.line("seat_attached", times=seats)
        process.line("engine_started")
        time.sleep(settle_s)
        return process.rss_bytes


def _bare_bytes(settle_s: float) -> float:
    with Watched([sys.executable, str(_FLOOR)], cwd=_FLOOR.parent) as process:
        process.line("imported")
        time.sleep(settle_s)
        return process.rss_bytes


MEASUREMENTS = (
    Measurement(
        "memory",
        {
            "idle_rss_mib": "resident memory of an idle node, API included, 10 seats",
            "per_seat_kib": "resident memory of each further idle seat (200 more)",
        },
        _memory,
    ),
)
