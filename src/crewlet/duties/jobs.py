"""Several jobs behind one duty: each is tried, whatever became of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog

from crewlet.base import limits
from crewlet.base.errors import CrewletError, Fenced
from crewlet.base.fence import Fence
from crewlet.duties.ending import is_asked_to_end

__all__ = ["Job", "JobsFailed", "each_job"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """One part of a duty's work."""

    name: str
    run: Callable[[Fence], Awaitable[None]]


class JobsFailed(CrewletError):
    """Some jobs of a tick did not do their work; the others did."""

    def __init__(self, failed: Sequence[tuple[str, str]]) -> None:
        self.names = tuple(name for name, _ in failed)
        super().__init__("; ".join(f"{name}: {error}" for name, error in failed))


def each_job(jobs: Sequence[Job]) -> Callable[[Fence], Awaitable[None]]:
    """Work that does one job after another. Raises ``JobsFailed`` at its end, and ``Fenced`` at once."""

    async def work(fence: Fence) -> None:
        failed: list[tuple[str, str]] = []
        for job in jobs:
            fence.check()
            if error := await _done(job, fence):
                failed.append((job.name, error))
        if failed:
            raise JobsFailed(failed)

    return work


async def _done(job: Job, fence: Fence) -> str:
    """What went wrong, in a few words; empty where nothing did."""
    try:
        async with asyncio.timeout(limits.MAINTENANCE_JOB_MAX_S):
            await job.run(fence)
    except Fenced:
        raise
    except asyncio.CancelledError:
        if is_asked_to_end():
            raise
        error = "what it waited for was cancelled"
        _log.warning("maintenance_job_failed", job=job.name, error=error)
    except TimeoutError:
        error = f"not done within {limits.MAINTENANCE_JOB_MAX_S:g} s"
        _log.warning("maintenance_job_failed", job=job.name, error=error)
    except CrewletError as failure:
        error = str(failure)
        _log.warning("maintenance_job_failed", job=job.name, error=error)
    except Exception as failure:  # noqa: BLE001 - supervisor: the other jobs have their turn
        error = repr(failure)
        _log.exception("maintenance_job_failed", job=job.name)
    else:
        return ""
    return error
