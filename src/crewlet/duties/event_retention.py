"""The node's own event log kept to its horizon: each node sweeps its own, whoever has the company's duties."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.duties.duty import Chore
from crewlet.store import EventLog

__all__ = ["event_retention"]

_log = structlog.get_logger(__name__)


def event_retention(event_log: EventLog, clock: Clock) -> Chore:
    """Deletes what is older than ``limits.EVENT_LOG_RETENTION_S``, a bounded number of rows a tick."""

    async def work() -> None:
        before = clock.now() - timedelta(seconds=limits.EVENT_LOG_RETENTION_S)
        removed = 0
        for _ in range(limits.EVENT_PRUNES_A_TICK_MAX):
            pruned = await event_log.prune(before)
            removed += pruned
            if pruned == 0:
                break
            # One writer serves everything that publishes: its turn comes between two deletes.
            await asyncio.sleep(limits.EVENT_PRUNE_PAUSE_S)
        if removed:
            _log.info("events_pruned", removed=removed)

    return Chore(name="event-retention", every_s=limits.MAINTENANCE_EVERY_S, work=work)
