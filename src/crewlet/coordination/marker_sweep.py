"""Taking away the markers that removed records leave in buckets without an age (S0)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.slots import swept_slots

__all__ = ["MARKER_SWEEP_JOB", "MarkerSweep", "sweep_markers"]

_log = structlog.get_logger(__name__)

MARKER_SWEEP_JOB: Final = "coordination_markers"


@dataclass(frozen=True, slots=True)
class MarkerSweep:
    """How many markers went from each bucket that could be swept, and the buckets that could not."""

    removed: Mapping[str, int]
    failed: tuple[str, ...] = ()


async def sweep_markers(stores: Mapping[str, RecordStore], now: datetime) -> MarkerSweep:
    """The markers written ``limits.MARKER_RETENTION_S`` before ``now`` or earlier are gone from each swept bucket.

    ``stores`` has a store for each slot, by name. A bucket that does not answer is logged and left to the next sweep;
    the others are swept all the same. No marker decides an answer, so which way this fails changes none.
    """
    before = now - timedelta(seconds=limits.MARKER_RETENTION_S)
    removed: dict[str, int] = {}
    failed: list[str] = []
    for slot in swept_slots():
        store = stores[slot.name]
        try:
            removed[slot.name] = await store.purge_markers(before=before)
        except Unavailable as error:
            failed.append(slot.name)
            _log.warning("marker_sweep_failed", job=MARKER_SWEEP_JOB, slot=slot.name, error=str(error))
    _log.debug("markers_swept", job=MARKER_SWEEP_JOB, removed=sum(removed.values()), failed=failed)
    return MarkerSweep(removed, tuple(failed))
