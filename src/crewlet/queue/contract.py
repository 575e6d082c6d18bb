"""The event queue's contract: durable mailboxes by topic and group, outcomes, verbs, listeners, broadcast (S2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from crewlet.base import limits
from crewlet.events import Event

__all__ = [
    "Ack",
    "Defer",
    "Delivery",
    "EventQueue",
    "Handler",
    "Nak",
    "Outcome",
    "PublishListener",
    "QueueConfig",
    "StreamHandler",
    "StreamSubscription",
    "Subscription",
    "nak_backoff_s",
]


@dataclass(frozen=True, slots=True)
class Subscription:
    """One durable mailbox: the exact topic, and the group whose members compete for its mail."""

    topic: str
    group: str


@dataclass(frozen=True, slots=True)
class Ack:
    """Done with; it does not come back."""


@dataclass(frozen=True, slots=True)
class Nak:
    """The handler failed: back behind the waiting mail after a backoff, one delivery dearer (E-034)."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Defer:
    """This process has lost the right to the work: back at the head at once, and this attachment stops fetching."""

    reason: str


Outcome = Ack | Nak | Defer


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message handed to a handler. ``headroom`` is how many further deliveries it has: zero on the last."""

    subscription: Subscription
    event: Event
    headroom: int


Handler = Callable[[Delivery], Awaitable[Outcome]]
"""Works one delivery and says what becomes of it. An exception counts as ``Nak``."""

PublishListener = Callable[[str, Event], Awaitable[None]]
"""Told of each publish after the broker acknowledged it: topic, and the event as the queue stamped it."""

StreamHandler = Callable[[str, Event], None]
"""Told of each matching event from now on: topic and event. Must not block."""


class StreamSubscription(Protocol):
    """A live feed of one caller."""

    async def close(self) -> None:
        """End the feed; harmless when repeated."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """The queue's clocks and budgets; the defaults are what ships."""

    ack_wait_s: float = limits.ACK_WAIT_S
    max_deliver: int = limits.MAX_DELIVER
    nak_backoff_first_s: float = limits.NAK_BACKOFF_FIRST_S
    nak_backoff_max_s: float = limits.NAK_BACKOFF_MAX_S
    event_retention_s: float = 30 * 24 * 3600.0
    replicas: int = 1


def nak_backoff_s(config: QueueConfig, deliveries: int) -> float:
    """Seconds until a message that failed its ``deliveries``-th delivery (from 1) comes back."""
    exponent = min(max(deliveries - 1, 0), 30)
    return min(config.nak_backoff_first_s * 2.0**exponent, config.nak_backoff_max_s)


class EventQueue(Protocol):
    """Publish and consume events. Every call may raise ``Unavailable``: it may have happened."""

    async def publish(self, topic: str, event: Event) -> Event:
        """Store ``event`` for every subscription of ``topic``; returns the copy that was stamped with this node.

        True afterwards: the broker has acknowledged the message and every publish listener has been awaited.
        A topic that no durable subscription covers drops the event on the mailbox streams (S-138). A repeat with the
        same event id inside the broker's duplicate window is stored once. Raises ``PayloadTooLarge``.
        """
        ...

    async def ensure_subscription(self, subscription: Subscription) -> None:
        """Create the durable mailbox, detached, from the first message on; a no-op where it exists as configured."""
        ...

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        """Attach this process: one delivery at a time, the next fetched only after the last was settled.

        Creates the mailbox where missing. Raises ``ValueError`` if this process is attached already.
        """
        ...

    async def quiesce(self, subscription: Subscription) -> None:
        """Stop fetching, stay attached; a running handler goes on. A no-op when not attached."""
        ...

    async def unquiesce(self, subscription: Subscription) -> None:
        """Fetch again after :meth:`quiesce` or a deferral. A no-op when not attached or not quiesced."""
        ...

    async def wait_idle(self, subscription: Subscription) -> None:
        """Return once no handler of this attachment runs."""
        ...

    async def detach(self, subscription: Subscription) -> None:
        """Close this process's attachment at once; the mailbox, its place and its mail stay.

        Does not wait for a running handler, whose outcome is no longer reported.
        """
        ...

    async def delete_subscription(self, subscription: Subscription) -> None:
        """Destroy the mailbox and the mail it retains, attached here or not."""
        ...

    async def release_held(self, subscription: Subscription) -> None:
        """Give back at once what a dead holder had fetched and never settled, one delivery dearer each.

        Only under the seat's lease, before the attach, and only after a lapse.
        """
        ...

    async def subscribe_stream(self, pattern: str, handler: StreamHandler) -> StreamSubscription:
        """Feed every event that matches ``pattern`` (``*``, ``>``) from now on to ``handler``; acknowledges nothing.

        Raises ``ValueError`` for a pattern that spans namespaces.
        """
        ...

    def add_publish_listener(self, listener: PublishListener) -> Callable[[], None]:
        """Await ``listener`` inside each publish of this process; its failures are logged. Returns what removes it."""
        ...

    async def close(self) -> None:
        """Detach everything and end this client's tasks."""
        ...
