"""Where the processor time of a turn goes, summed by room of the engine."""

from __future__ import annotations

import cProfile
import pstats
from collections import Counter
from pathlib import Path
from typing import Any, cast

import crewlet

__all__ = ["by_function", "by_room"]

_SOURCE = Path(crewlet.__file__).parent


def by_room(profiler: cProfile.Profile, turns: int) -> str:
    """Milliseconds a turn spends in each room's own lines and in libraries; the profiler's own cost is in them."""
    spent: Counter[str] = Counter()
    for (file, _line, name), own_s in _own_times(profiler):
        spent[_room(file, name)] += int(own_s * 1e6)
    lines = [f"{micros / 1000 / turns:8.3f} ms  {room}" for room, micros in spent.most_common(25)]
    return "\n".join(lines)


def by_function(profiler: cProfile.Profile, turns: int, count: int = 30) -> str:
    """The functions whose own lines cost the most."""
    found = sorted(_own_times(profiler), key=lambda each: -each[1])[:count]
    return "\n".join(f"{own_s * 1000 / turns:8.3f} ms  {_place(*place)}" for place, own_s in found)


def _own_times(profiler: cProfile.Profile) -> list[tuple[tuple[str, int, str], float]]:
    stats = cast("Any", pstats.Stats(profiler)).stats
    return [(place, row[2]) for place, row in stats.items()]


def _room(file: str, name: str) -> str:
    path = Path(file)
    if path.is_relative_to(_SOURCE):
        parts = path.relative_to(_SOURCE).parts
        return "crewlet." + ".".join(parts[:2] if parts[0] == "backends" else parts[:1])
    if path.is_relative_to(Path(__file__).parent):
        return "the benchmark itself"
    if "site-packages" in path.parts:
        return path.parts[path.parts.index("site-packages") + 1]
    return "built in" if file == "~" else f"standard library: {path.stem}" if path.suffix == ".py" else name


def _place(file: str, line: int, name: str) -> str:
    path = Path(file)
    if path.is_relative_to(_SOURCE):
        return f"{path.relative_to(_SOURCE)}:{line} {name}"
    return f"{path.name}:{line} {name}"
