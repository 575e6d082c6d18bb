"""Reading a watch as the cases do: with a deadline, into a view of what stands."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from crewlet.coordination import Change, Record, Watch

__all__ = ["by_key", "caught_up", "followed", "next_change"]

_SOON_S = 10.0


async def next_change(watch: Watch) -> Change:
    """The next change, which has to be there soon."""
    async with asyncio.timeout(_SOON_S):
        return await watch.next()


async def followed(watch: Watch, view: dict[str, Record], *, changes: int) -> int:
    """Take some changes into the view, none of which may be older than what is known; returns the last's revision."""
    revision = 0
    for _ in range(changes):
        change = await next_change(watch)
        known = view.pop(change.key, None)
        assert known is None or change.revision > known.revision, f"{change} after {known}"
        assert change.revision > revision, f"{change} after revision {revision}"
        revision = change.revision
        if change.record is not None:
            assert (change.record.key, change.record.revision) == (change.key, change.revision)
            view[change.key] = change.record
    return revision


async def caught_up(watch: Watch, view: dict[str, Record], last: int) -> None:
    """Take changes into the view up to the write ``last``, which is no removal."""
    seen = max((record.revision for record in view.values()), default=0)
    while seen < last:
        seen = await followed(watch, view, changes=1)


def by_key(found: Sequence[Record]) -> dict[str, Record]:
    """What was found, by its key."""
    return {record.key: record for record in found}
