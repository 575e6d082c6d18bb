"""Taking old removal markers out of a bucket: one pass, and a purge of each through the marker's own revision (S0)."""

from __future__ import annotations

from datetime import datetime

from crewlet.backends.nats.bucket_leader import BucketLeader
from crewlet.backends.nats.bucket_messages import Marker, Shown
from crewlet.backends.nats.bucket_watch import PassMaker
from crewlet.base import limits
from crewlet.base.tasks import each_at_once

__all__ = ["sweep_markers"]


async def sweep_markers(leader: BucketLeader, make_pass: PassMaker, before: datetime) -> int:
    """Purge the markers written before this that the pass shows; returns how many went. Raises ``Unavailable``.

    Nothing certifies this pass: what it does not reach, another sweep does. A purge is bounded by what the pass saw,
    so that a record written since stays.
    """
    old: dict[str, Marker] = {}

    def on_shown(item: Shown) -> None:
        if isinstance(item, Marker) and item.written_at < before:
            old[item.key] = item
        else:
            old.pop(item.key, None)

    walk = make_pass(on_shown)
    try:
        await walk.open()
        await walk.wait_end()
    finally:
        await walk.close()
    purged = 0

    async def purge(marker: Marker) -> None:
        nonlocal purged
        gone = await leader.purge(marker.key, through=marker.revision)
        purged += gone

    await each_at_once([*old.values()], purge, at_once=limits.LISTING_READS_AT_ONCE)
    return purged
