"""The events that a message's standing is folded from, read from this node's log."""

from __future__ import annotations

from dataclasses import replace

from crewlet.base import limits
from crewlet.events import Event
from crewlet.node.message_view import CHAIN_TYPES
from crewlet.store import EventFilter, EventLog, StoredEvent

__all__ = ["chain_events"]


async def chain_events(log: EventLog, trace_id: str) -> list[Event]:
    """All of a chain's events, oldest first, up to ``limits.CHAIN_EVENTS_MAX`` of the newest. Raises ``Unavailable``.

    Read page by page: without its first events a long chain would look as if nobody had ever taken it up.
    """
    rows: list[StoredEvent] = []
    wanted = EventFilter(trace_id=trace_id, types=tuple(sorted(CHAIN_TYPES)), limit=limits.EVENT_PAGE_MAX)
    while len(rows) < limits.CHAIN_EVENTS_MAX and (page := await log.events(wanted)):
        rows += page
        wanted = replace(wanted, before=page[-1].cursor)
    return [row.event for row in reversed(rows)]
