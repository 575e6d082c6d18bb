"""``python -m benchmarks``: measure, print the table, write the results; exit 1 when a bound does not hold."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog

from benchmarks import profiling, table, turn_cost
from benchmarks.figures import FULL, SMALL, Figure, Measurement, figure
from benchmarks.suite import MACHINE, MEASUREMENTS


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when every bound holds. A small run measures everything and holds nothing to a bound."""
    options = _options(arguments)
    if options.markdown:
        titles = {name: what for each in MEASUREMENTS for name, what in each.figures.items()}
        print(table.markdown(table.load(), titles))
        return 0
    # What the engine logs while it is measured in this process would stand in the middle of the table.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    if options.profile:
        _profile()
        return 0
    figures = _measure(_chosen(options.only), small=options.small)
    print(table.text(figures))
    output = options.output or (table.LATEST if not options.small and not options.only else None)
    if output is not None:
        table.save(figures, output)
    exceeded = [each.name for each in figures if not each.ok]
    if exceeded and not options.small:
        print(f"\nAbove its bound: {', '.join(exceeded)}", file=sys.stderr)
        return 1
    return 0


def _measure(measurements: Sequence[Measurement], *, small: bool) -> list[Figure]:
    sizes = SMALL if small else FULL
    cores, before, after = MACHINE
    figures = [figure(cores, os.cpu_count() or 1, "cores"), _load(before)]
    for measurement in measurements:
        print(f"measuring {', '.join(measurement.figures)}", file=sys.stderr)
        figures += measurement.measure(sizes)
    return [*figures, _load(after)]


def _load(name: str) -> Figure:
    return figure(name, os.getloadavg()[0], "running")


def _profile() -> None:
    turns = FULL.turns
    profiler = turn_cost.profile(turns, FULL.seats)
    print(f"A turn's own time in each room, over {turns} turns:\n{profiling.by_room(profiler, turns)}")
    print(f"\nand in single functions:\n{profiling.by_function(profiler, turns)}")


def _chosen(names: Sequence[str]) -> list[Measurement]:
    known = {name for each in MEASUREMENTS for name in (each.name, *each.figures)}
    if unknown := set(names) - known:
        sys.exit(f"no such figure: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    return [each for each in MEASUREMENTS if not names or set(names) & {each.name, *each.figures}]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--small", action="store_true", help="only see that everything is measured; writes nothing")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one figure; may be repeated")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--profile", action="store_true", help="instead, where the time of a turn goes")
    parser.add_argument("--markdown", action="store_true", help="instead, the latest results as the README shows them")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
