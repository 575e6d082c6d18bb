"""One run from one seed, the same each time, and what is left of a plan that breaks a rule when it is cut down."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from crewlet.base.errors import CrewletError
from crewlet.testing.simulation.company import Fault
from crewlet.testing.simulation.drawing import draw_plan
from crewlet.testing.simulation.ledger import Finding
from crewlet.testing.simulation.plan import Plan, Step
from crewlet.testing.simulation.trace import Trace
from crewlet.testing.simulation.world import World
from crewlet.testing.virtual_time import run_virtual

__all__ = ["NO_FAULT", "Run", "run_plan", "shrunk", "simulate", "told"]

NO_FAULT: Final = Fault("none")
_LIMIT_S: Final = 24 * 3600.0
_SHRINKING_RUNS_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class Run:
    """What a plan led to: the first rule that was broken, if one was, and everything that happened."""

    plan: Plan
    finding: Finding | None
    digest: str
    lines: tuple[str, ...] = field(repr=False)
    counts: Counter[str] = field(repr=False)
    virtual_s: float


def simulate(seed: int, fault: Fault = NO_FAULT) -> Run:
    """Run what ``seed`` stands for. Not from inside a running loop."""
    return run_plan(draw_plan(seed), fault)


def run_plan(plan: Plan, fault: Fault = NO_FAULT) -> Run:
    """Run a plan in virtual time. What the queue raises where it must not is a finding as well."""
    worlds: list[World] = []

    async def live() -> float:
        world = World(plan, fault)
        worlds.append(world)
        await world.run()
        return asyncio.get_running_loop().time()

    raised: Finding | None = None
    virtual_s = 0.0
    try:
        virtual_s = run_virtual(live(), limit_s=_LIMIT_S)
    except (CrewletError, AssertionError, RuntimeError, ValueError, TimeoutError) as error:
        raised = Finding("raised", repr(error))
    ledger = worlds[0].ledger if worlds else None
    found = [] if ledger is None else ledger.findings
    trace = Trace() if ledger is None else ledger.trace
    counts: Counter[str] = Counter() if ledger is None else ledger.counts
    return Run(plan, found[0] if found else raised, trace.digest, tuple(trace.lines), counts, virtual_s)


def shrunk(run: Run, fault: Fault = NO_FAULT) -> Run:
    """The run of the fewest steps found in a bounded search that still breaks the same rule."""
    assert run.finding is not None, "a run that breaks no rule has nothing to be cut down to"
    rule, best, left = run.finding.rule, run, _SHRINKING_RUNS_MAX
    size = max(len(run.plan.steps) // 2, 1)
    while size and left > 0:
        smaller = None
        for start in range(0, len(best.plan.steps), size):
            left -= 1
            candidate = run_plan(replace(best.plan, steps=_without(best.plan.steps, start, size)), fault)
            if candidate.finding is not None and candidate.finding.rule == rule:
                smaller = candidate
                break
            if left <= 0:
                break
        if smaller is None:
            size //= 2
        else:
            best = smaller
            size = min(size, max(len(best.plan.steps) // 2, 1))
    return best


def told(run: Run) -> str:
    """A run for a person to read: the seed, what was found, and each thing that happened on the way there."""
    found = "no rule was broken" if run.finding is None else f"{run.finding.rule}: {run.finding.what}"
    heading = f"seed {run.plan.seed}, {len(run.plan.steps)} steps, digest {run.digest[:16]}\n{found}"
    return "\n".join((heading, *run.lines))


def _without(steps: tuple[tuple[float, Step], ...], start: int, size: int) -> tuple[tuple[float, Step], ...]:
    return steps[:start] + steps[start + size :]
