"""The full simulation of turns: many bad days, then planted faults; writes what it found beside itself."""

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
from pathlib import Path

from crewlet.testing.turn_simulation import TURN_FAULTS, TurnPlan, TurnRun, simulate_turns
from tests.sim.seeds import Lived, as_found, as_lived, lived, median

RESULT = Path(__file__).parent / "results" / "turns.json"
SEEDS = 2000
FAULT_SEEDS = 60
PLAN = TurnPlan()
LIMIT_S = 1800.0
TOLD_MAX = 10


def main() -> int:
    """Run it; 1 where a rule was broken, or where a planted fault was not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument(
        "--faults", type=int, default=FAULT_SEEDS, help="seeds for each planted fault; 0: none is planted"
    )
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 2))
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for the days without a fault")
    arguments = parser.parse_args()
    found: dict[str, object] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    broken = missed = 0
    with ProcessPoolExecutor(arguments.workers) as workers:
        if arguments.seeds:
            seeds = range(arguments.first, arguments.first + arguments.seeds)
            found["days"], broken = lived_through(workers, seeds, at_once=arguments.workers, limit_s=arguments.limit)
            RESULT.write_text(json.dumps(found, indent=2) + "\n")
        if arguments.faults:
            found["planted_faults"], missed = planted(workers, arguments.faults)
            RESULT.write_text(json.dumps(found, indent=2) + "\n")
    print(f"{RESULT.name} is written")
    return 1 if broken or missed else 0


def lived_through(
    workers: ProcessPoolExecutor, seeds: Sequence[int], *, at_once: int, limit_s: float
) -> tuple[dict[str, object], int]:
    """Every seed, as many as there is time for; and how many broke a rule."""
    begun_s = time.monotonic()
    happened: Counter[str] = Counter()
    findings: list[dict[str, object]] = []
    rested_s: list[float] = []
    processor_s, virtual_s, triggers, count = 0.0, 0.0, 0, 0
    for each in as_lived(workers, live, seeds, at_once=at_once, until_s=begun_s + limit_s):
        run, count = each.run, count + 1
        happened += run.happened
        processor_s, virtual_s, triggers = (
            processor_s + each.processor_s,
            virtual_s + run.virtual_s,
            triggers + run.triggers,
        )
        rested_s.append(run.rested_s)
        if run.findings:
            findings.append(as_found(run, telling=len(findings) < TOLD_MAX))
    print(f"{count} of {len(seeds)} days: {len(findings)} with findings")
    told: dict[str, object] = {
        "plan": asdict(PLAN),
        "first_seed": seeds[0],
        "seeds": count,
        "asked": len(seeds),
        "wall_s": round(time.monotonic() - begun_s, 1),
        "processor_s": round(processor_s, 1),
        "virtual_hours": round(virtual_s / 3600, 1),
        "triggers": triggers,
        "at_rest_after_s": {"most": max(rested_s, default=0.0), "median": median(rested_s)},
        "happened": dict(sorted(happened.items())),
        "findings": findings,
    }
    return told, len(findings)


def live(seed: int) -> Lived[TurnRun]:
    """One seed's day."""
    return lived(lambda: simulate_turns(seed, PLAN))


def planted(workers: ProcessPoolExecutor, seeds: int) -> tuple[dict[str, object], int]:
    """Each planted fault, until a seed shows it by a rule that has to; and how many were not shown."""
    begun_s = time.monotonic()
    shown = {fault.name: workers.submit(first_shown, number, seeds) for number, fault in enumerate(TURN_FAULTS)}
    found = {name: about for name, future in shown.items() if (about := future.result())}
    not_found = [name for name in shown if name not in found]
    print(f"{len(found)} planted faults found, {len(not_found)} not")
    told: dict[str, object] = {
        "seeds_each": seeds,
        "wall_s": round(time.monotonic() - begun_s, 1),
        "found": found,
        "not_found": not_found,
    }
    return told, len(not_found)


def first_shown(number: int, seeds: int) -> dict[str, object]:
    """How the fault showed first, by its number: what is planted cannot be sent to another process."""
    fault = TURN_FAULTS[number]
    for seed in range(seeds):
        for finding in simulate_turns(seed, fault=fault).findings:
            if finding.rule in fault.rules:
                return {"seed": seed, "rule": finding.rule, "what": finding.what}
    return {}


if __name__ == "__main__":
    sys.exit(main())
