"""The full simulation of the fleet: many small ones, the full size, planted faults; writes what it found."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

from crewlet.testing.fleet_simulation import (
    FLEET_FAULTS,
    FULL,
    QUARTER,
    FleetFault,
    FleetPlan,
    FleetRun,
    simulate_fleet,
)
from tests.sim.seeds import Lived, as_found, as_lived, lived, median

RESULT = Path(__file__).parent / "results" / "fleet.json"
SEEDS = 1000
UNEVEN_SEEDS = 100
UNEVEN_SEATS = 83
QUARTER_SEEDS = 10
FULL_SEEDS = 5
FAULT_SEEDS = 40
FAULTY = FleetPlan(nodes=5, seats=24, pinned=4, troubles=30, updated=3)
LIMIT_S = 1800.0
FULL_LIMIT_S = 7200.0
TOLD_MAX = 10


def main() -> int:
    """Run it; 1 where a rule was broken, or where a planted fault was not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="small fleets")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--uneven", type=int, default=UNEVEN_SEEDS, help="small fleets whose shares come out uneven")
    parser.add_argument("--quarter", type=int, default=QUARTER_SEEDS, help="fleets of a quarter of the full size")
    parser.add_argument("--full", type=int, default=FULL_SEEDS, help="fleets of the full size")
    parser.add_argument(
        "--faults", type=int, default=FAULT_SEEDS, help="seeds for each planted fault; 0: none is planted"
    )
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 2))
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for each of the smaller sizes")
    parser.add_argument("--full-limit", type=float, default=FULL_LIMIT_S, help="seconds for those of the full size")
    arguments = parser.parse_args()
    found: dict[str, dict[str, object]] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    with ProcessPoolExecutor(arguments.workers) as workers:
        sizes = {
            "small": (FleetPlan(), arguments.seeds, arguments.limit),
            "uneven": (FleetPlan(seats=UNEVEN_SEATS), arguments.uneven, arguments.limit),
            "quarter": (QUARTER, arguments.quarter, arguments.limit),
            "full": (FULL, arguments.full, arguments.full_limit),
        }
        for name, (plan, count, limit_s) in sizes.items():
            if count:
                seeds = range(arguments.first, arguments.first + count)
                found[name] = lived_through(workers, plan, seeds, at_once=arguments.workers, limit_s=limit_s)
                RESULT.write_text(json.dumps(found, indent=2) + "\n")
        if arguments.faults:
            found["planted_faults"] = planted(workers, arguments.faults)
            RESULT.write_text(json.dumps(found, indent=2) + "\n")
    print(f"{RESULT.name} is written")
    broken = any(found.get(name, {}).get("findings") for name in ("small", "uneven", "quarter", "full"))
    return 1 if broken or found.get("planted_faults", {}).get("not_found") else 0


def lived_through(
    workers: ProcessPoolExecutor, plan: FleetPlan, seeds: Sequence[int], *, at_once: int, limit_s: float
) -> dict[str, object]:
    """Every seed, as many as there is time for."""
    begun_s = time.monotonic()
    happened: Counter[str] = Counter()
    moved: Counter[int] = Counter()
    findings: list[dict[str, object]] = []
    rested_s: list[float] = []
    processor_s, virtual_s, grants, calls, count = 0.0, 0.0, 0, 0, 0
    for each in as_lived(workers, partial(live, plan), seeds, at_once=at_once, until_s=begun_s + limit_s):
        run, count = each.run, count + 1
        happened += run.happened
        moved += run.moved
        processor_s, virtual_s = processor_s + each.processor_s, virtual_s + run.virtual_s
        grants, calls = grants + run.grants, calls + run.calls
        rested_s.extend(run.rested_s)
        if run.findings:
            findings.append(as_found(run, telling=len(findings) < TOLD_MAX))
    print(f"{count} of {len(seeds)} fleets of {plan.nodes} nodes and {plan.seats} seats: {len(findings)} findings")
    return {
        "plan": asdict(plan),
        "first_seed": seeds[0],
        "seeds": count,
        "asked": len(seeds),
        "wall_s": round(time.monotonic() - begun_s, 1),
        "processor_s": round(processor_s, 1),
        "virtual_days": round(virtual_s / 86400, 2),
        "grants": grants,
        "tool_calls": calls,
        "at_rest_after_s": {"most": max(rested_s, default=0.0), "median": median(rested_s)},
        "seats_moved_by_updates": {str(moves): seats for moves, seats in sorted(moved.items())},
        "happened": dict(sorted(happened.items())),
        "findings": findings,
    }


def live(plan: FleetPlan, seed: int) -> Lived[FleetRun]:
    """One seed's hour."""
    return lived(lambda: simulate_fleet(seed, plan))


def planted(workers: ProcessPoolExecutor, seeds: int) -> dict[str, object]:
    """Each planted fault, until a seed shows it by a rule that has to."""
    begun_s = time.monotonic()
    shown = [(fault, workers.submit(first_shown, number, seeds)) for number, fault in enumerate(FLEET_FAULTS)]
    found = {fault.name: about(fault, future.result()) for fault, future in shown}
    not_found = [fault.name for fault, future in shown if future.result() is None]
    print(f"{len(found) - len(not_found)} planted faults found, {len(not_found)} not")
    return {
        "plan": asdict(FAULTY),
        "seeds_each": seeds,
        "wall_s": round(time.monotonic() - begun_s, 1),
        "found": {name: what for name, what in found.items() if name not in not_found},
        "not_found": not_found,
    }


def first_shown(number: int, seeds: int) -> FleetRun | None:
    """The first run in which the fault shows, by its number: what is planted cannot be sent to another process."""
    fault = FLEET_FAULTS[number]
    runs = (simulate_fleet(seed, FAULTY, fault) for seed in range(seeds))
    return next((run for run in runs if {finding.rule for finding in run.findings} & {*fault.rules}), None)


def about(fault: FleetFault, run: FleetRun | None) -> dict[str, object]:
    """How the fault showed."""
    if run is None:
        return {}
    finding = next(finding for finding in run.findings if finding.rule in fault.rules)
    return {"beset_by": fault.beset_by, "seed": run.seed, "rule": finding.rule, "what": finding.what}


if __name__ == "__main__":
    sys.exit(main())
