"""What a handler is given and what it answers: subscriptions, deliveries, outcomes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from crewlet.events import Event

__all__ = ["Ack", "Defer", "Delivery", "Handler", "Nak", "Outcome", "Subscription"]


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
