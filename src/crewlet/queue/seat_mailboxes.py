"""The mailboxes of a seat: which they are, and which of the broker's subscriptions are some seat's (S1)."""

from __future__ import annotations

from crewlet import topics
from crewlet.queue.deliveries import Subscription

__all__ = ["control_of", "inbox_of", "mailboxes_of", "owner_of_mailbox", "reflect_of"]


def inbox_of(handle: str) -> Subscription:
    """Where all work of the seat waits."""
    return Subscription(topics.agent_inbox(handle), topics.inbox_group(handle))


def control_of(handle: str) -> Subscription:
    """Where starts and completions of the seat's detached runs wait."""
    return Subscription(topics.agent_control(handle), topics.control_group(handle))


def reflect_of(handle: str) -> Subscription:
    """Where the seat's finished turns wait to be reflected on."""
    return Subscription(topics.agent_reflect(handle), topics.reflect_group(handle))


def mailboxes_of(handle: str) -> tuple[Subscription, Subscription, Subscription]:
    """All that a seat has: what is created for it, and deleted once it is gone for good."""
    return inbox_of(handle), control_of(handle), reflect_of(handle)


def owner_of_mailbox(subscription: Subscription) -> str | None:
    """The seat that this is a mailbox of; ``None`` for any other, also for a foreign group on a seat's topic."""
    handle = topics.seat_handle(subscription.topic)
    return handle if handle and subscription in mailboxes_of(handle) else None
