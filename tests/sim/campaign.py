"""The full simulation of the event queue: many seeds, then the planted faults; writes what it found beside itself."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import structlog

from crewlet.testing.saboteurs import QUEUE_SABOTEURS
from crewlet.testing.simulation import Fault, Run, shrunk, simulate, told
from crewlet.testing.simulation.faults import SIMULATED_FAULTS, fault_of

RESULT = Path(__file__).parent / "results" / "queue.json"
SEEDS = 2000
FAULT_SEEDS = 40
TOLD_MAX = 10
LIMIT_S = 900.0
_CRITICAL = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """What many seeds led to. ``processor_s`` is what it takes on a machine that does nothing else."""

    first_seed: int
    seeds: int
    wall_s: float
    processor_s: float
    virtual_days: float
    happened: dict[str, int]
    findings: list[dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedFaults:
    """Which planted faults some seed shows, and by what."""

    seeds_each: int
    wall_s: float
    processor_s: float
    found: dict[str, dict[str, object]]
    not_found: list[str]


def main() -> int:
    """Run it; 1 where a rule was broken, or where a planted fault was not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(_CRITICAL))
    days = live_through(arguments.first, arguments.seeds)
    faults = plant_faults()
    RESULT.write_text(json.dumps({"days": asdict(days), "planted_faults": asdict(faults)}, indent=2) + "\n")
    print(f"{days.seeds} seeds in {days.wall_s} s, {len(days.findings)} findings; ", end="")
    print(f"{len(faults.found)} planted faults found, {len(faults.not_found)} not; {RESULT.name} is written")
    return 1 if days.findings or faults.not_found else 0


def live_through(first: int, seeds: int) -> Days:
    """Every seed in turn, as many as there is time for."""
    begun_s, processor_s = time.monotonic(), time.process_time()
    counts: Counter[str] = Counter()
    findings: list[dict[str, object]] = []
    virtual_s, lived = 0.0, 0
    for seed in range(first, first + seeds):
        run = simulate(seed)
        counts += run.counts
        virtual_s += run.virtual_s
        lived += 1
        if run.finding is not None:
            findings.append(as_found(run, telling=len(findings) < TOLD_MAX))
        if time.monotonic() - begun_s > LIMIT_S:
            print(f"no time for more than {lived} of {seeds} seeds", file=sys.stderr)
            break
    return Days(
        first_seed=first,
        seeds=lived,
        wall_s=round(time.monotonic() - begun_s, 1),
        processor_s=round(time.process_time() - processor_s, 1),
        virtual_days=round(virtual_s / 86400, 2),
        happened=dict(sorted(counts.items())),
        findings=findings,
    )


def plant_faults() -> PlantedFaults:
    """Each planted fault, until a seed shows it."""
    begun_s, processor_s = time.monotonic(), time.process_time()
    found: dict[str, dict[str, object]] = {}
    not_found: list[str] = []
    for fault in (*SIMULATED_FAULTS, *(fault_of(kind) for kind in QUEUE_SABOTEURS)):
        run = first_found(fault)
        if run is None or run.finding is None:
            not_found.append(fault.name)
        else:
            found[fault.name] = {"seed": run.plan.seed, "rule": run.finding.rule, "what": run.finding.what}
    return PlantedFaults(
        seeds_each=FAULT_SEEDS,
        wall_s=round(time.monotonic() - begun_s, 1),
        processor_s=round(time.process_time() - processor_s, 1),
        found=found,
        not_found=not_found,
    )


def first_found(fault: Fault) -> Run | None:
    """The first run in which it shows."""
    runs = (simulate(seed, fault) for seed in range(FAULT_SEEDS))
    return next((run for run in runs if run.finding is not None), None)


def as_found(run: Run, *, telling: bool) -> dict[str, object]:
    """A finding for the result file, cut down and told in full where asked."""
    assert run.finding is not None
    story = told(shrunk(run)) if telling else ""
    print(story, file=sys.stderr)
    return {"seed": run.plan.seed, "rule": run.finding.rule, "what": run.finding.what, "story": story.splitlines()}


if __name__ == "__main__":
    sys.exit(main())
