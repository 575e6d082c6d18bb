"""A measured figure beside its floor and its bound, and how long a run may take to measure it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["FULL", "SMALL", "Figure", "Measurement", "Sizes", "figure", "median"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the results. It is ``ok`` while ``value`` is at most ``bound``; without a bound it always is.

    ``floor`` is what the same work costs without the engine, ``ratio`` the value over it. A bound that is a multiple
    of the floor stands here multiplied out, in the figure's own unit.
    """

    name: str
    value: float
    unit: str
    floor: float | None
    floor_name: str | None
    peer: float | None
    peer_name: str | None
    ratio: float | None
    bound: float | None
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How often each thing is done. Every figure is a median, or a mean over many, of that many."""

    commands: int
    starts: int
    example_starts: int
    publishes: int
    turns: int
    turn_batches: int
    memory_runs: int
    seats: int
    further_seats: int
    settle_s: float
    warm_up: bool


FULL = Sizes(
    commands=15,
    starts=7,
    example_starts=5,
    publishes=500,
    turns=200,
    turn_batches=5,
    memory_runs=3,
    seats=10,
    further_seats=200,
    settle_s=3.0,
    warm_up=True,
)
SMALL = Sizes(
    commands=1,
    starts=1,
    example_starts=1,
    publishes=10,
    turns=6,
    turn_batches=2,
    memory_runs=1,
    seats=3,
    further_seats=5,
    settle_s=0.2,
    warm_up=False,
)
"""As much as it takes to see that everything is measured; its values say nothing."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What yields some figures together: their names, known before anything is measured, and what each is."""

    name: str
    figures: Mapping[str, str]
    measure: Callable[[Sizes], Sequence[Figure]]


def figure(
    name: str,
    value: float,
    unit: str,
    *,
    floor: float | None = None,
    floor_name: str | None = None,
    bound: float | None = None,
) -> Figure:
    """A figure with its ratio and its verdict."""
    value = _rounded(value)
    bound = None if bound is None else _rounded(bound)
    return Figure(
        name=name,
        value=value,
        unit=unit,
        floor=None if floor is None else _rounded(floor),
        floor_name=floor_name,
        peer=None,
        peer_name=None,
        ratio=round(value / floor, 2) if floor else None,
        bound=bound,
        ok=bound is None or value <= bound,
    )


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
