"""What the tests of a seat's inbox share: partitions as the queue hands them over."""

from __future__ import annotations

from crewlet.events import Event
from crewlet.inbox import partition_of
from crewlet.queue import Batch, Delivery, inbox_of

__all__ = ["batch_of"]


def batch_of(*events: Event, headroom: int = 5, spent: tuple[str, ...] = ()) -> Batch:
    """One partition of the ceo's inbox; ``spent`` are the ids of those that are on their last delivery."""
    deliveries = [
        Delivery(inbox_of("ceo"), event, 0 if event.id in spent else headroom)
        for event in sorted(events, key=lambda each: each.timestamp)
    ]
    return Batch(inbox_of("ceo"), partition_of(events[0]), tuple(deliveries))
