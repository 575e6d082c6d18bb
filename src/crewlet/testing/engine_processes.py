"""The processes that an engine under test started, known by id and age, so that a reused id is never mistaken."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import psutil

__all__ = ["StartedProcess", "end_processes", "processes_below", "running"]


@dataclass(frozen=True, slots=True)
class StartedProcess:
    """One process as it was seen. ``command`` tells a broker from a tool server."""

    pid: int
    started_at: float
    command: str = field(compare=False)

    @property
    def is_broker(self) -> bool:
        """Whether it is the broker program itself."""
        return "nats-server" in self.command


def processes_below(pid: int) -> frozenset[StartedProcess]:
    """Everything that stems from process ``pid``; empty when that is gone."""
    found: set[StartedProcess] = set()
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                found.add(StartedProcess(child.pid, child.create_time(), " ".join(child.cmdline())))
    return frozenset(found)


def running(processes: Iterable[StartedProcess]) -> frozenset[StartedProcess]:
    """Those that still run. One that has ended and that nobody has reaped yet runs no more."""
    return frozenset(each for each in processes if _is_running(each))


def end_processes(processes: Iterable[StartedProcess]) -> None:
    """Kill those that still run."""
    for each in running(processes):
        with contextlib.suppress(psutil.NoSuchProcess):
            psutil.Process(each.pid).kill()


def _is_running(seen: StartedProcess) -> bool:
    try:
        process = psutil.Process(seen.pid)
        return process.create_time() == seen.started_at and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
