"""Batches: how a haul is collected, cut into partitions, and in which order these are worked (S2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import structlog

from crewlet.base import limits
from crewlet.events import Event
from crewlet.queue.deliveries import Delivery, Outcome, Subscription

__all__ = ["Batch", "BatchHandler", "BatchOptions", "PartitionKey", "partitions_of"]

_log = structlog.get_logger(__name__)

PartitionKey = Callable[[Event], str]
"""What an event belongs together with; events of one key are handed over in one call."""


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How a haul is collected: for how long after its first message, and how many messages at most.

    Values out of range are cut to it on every construction, so that no caller gets past the bound; the company
    document refuses them at load, from the same constants (E-064).
    """

    linger_s: float = 0.0
    max_events: int = limits.BATCH_EVENTS

    def __post_init__(self) -> None:
        object.__setattr__(self, "linger_s", min(max(self.linger_s, 0.0), float(limits.MAX_LINGER_SECONDS)))
        object.__setattr__(self, "max_events", min(max(self.max_events, 1), limits.MAX_BATCH_EVENTS))


@dataclass(frozen=True, slots=True)
class Batch:
    """One partition of a haul, its deliveries by their events' own timestamps, the oldest first."""

    subscription: Subscription
    key: str
    deliveries: tuple[Delivery, ...]

    @property
    def headroom(self) -> int:
        """How many further deliveries the partition has: the smallest of its messages', since one outcome covers all.

        A handler that decides about one event reads that delivery's own (E-044).
        """
        return min(delivery.headroom for delivery in self.deliveries)


BatchHandler = Callable[[Batch], Awaitable[Outcome]]
"""Works one partition and says what becomes of all of it. An exception counts as ``Nak``."""


def partitions_of(subscription: Subscription, hauled: Iterable[Delivery], partition: PartitionKey) -> list[Batch]:
    """The partitions of one haul in the order in which they are worked: the oldest conversation first (E-066).

    A key function that fails gives its event a partition of its own: one malformed event must not hold up the others.
    """
    by_key: dict[str, list[Delivery]] = {}
    for delivery in hauled:
        by_key.setdefault(_key_of(delivery, partition), []).append(delivery)
    batches = [Batch(subscription, key, tuple(sorted(deliveries, key=_age))) for key, deliveries in by_key.items()]
    return sorted(batches, key=lambda batch: _age(batch.deliveries[0]))


def _age(delivery: Delivery) -> tuple[float, str]:
    return delivery.event.timestamp.timestamp(), delivery.event.id


def _key_of(delivery: Delivery, partition: PartitionKey) -> str:
    try:
        return partition(delivery.event)
    except Exception:  # noqa: BLE001 - supervisor: a caller's function; its fault costs the event its company alone
        _log.exception("partition_key_failed", topic=delivery.subscription.topic, event_id=delivery.event.id)
        return f"event:{delivery.event.id}"
