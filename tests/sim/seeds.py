"""What the campaigns of a fleet and of its turns share: seeds lived in several processes, and findings told."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from crewlet.testing.simulated import Finding


class Run(Protocol):
    """What one seed came to."""

    @property
    def seed(self) -> int: ...

    @property
    def findings(self) -> Sequence[Finding[Any]]: ...

    @property
    def story(self) -> Sequence[str]: ...


_RunT = TypeVar("_RunT", bound=Run)


@dataclass(frozen=True, slots=True)
class Lived(Generic[_RunT]):
    """One seed's time, and what it took of a processor."""

    run: _RunT
    processor_s: float


def lived(simulate: Callable[[], _RunT]) -> Lived[_RunT]:
    """One seed's time."""
    begun_s = time.process_time()
    run = simulate()
    return Lived(run, time.process_time() - begun_s)


def as_lived(
    workers: ProcessPoolExecutor,
    live: Callable[[int], Lived[_RunT]],
    seeds: Sequence[int],
    *,
    at_once: int,
    until_s: float,
) -> Iterator[Lived[_RunT]]:
    """What the seeds come to, as they end; none is begun past ``until_s``."""
    left = iter(seeds)
    running: set[Future[Lived[_RunT]]] = {workers.submit(live, seed) for seed in islice(left, at_once)}
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        if time.monotonic() < until_s:
            running |= {workers.submit(live, seed) for seed in islice(left, len(done))}
        for each in done:
            yield each.result()


def as_found(run: Run, *, telling: bool) -> dict[str, object]:
    """What broke, and where asked what had happened."""
    print(f"seed {run.seed}: {run.findings[0]}", file=sys.stderr)
    said = [f"{finding.at_s} {finding.rule}: {finding.what}" for finding in run.findings]
    return {"seed": run.seed, "found": said, "story": run.story if telling else []}


def median(values: Sequence[float]) -> float:
    """The middle one; 0 of none."""
    return sorted(values)[len(values) // 2] if values else 0.0
