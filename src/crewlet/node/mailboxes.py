"""The mailboxes behind every agent seat of the company; they exist before any seat runs (E-053)."""

from __future__ import annotations

from collections.abc import Iterable

from crewlet import topics
from crewlet.notify import inbound_subscription
from crewlet.queue import EventQueue, Subscription

__all__ = ["control_of", "ensure_mailboxes", "inbox_of", "reflect_of"]


def inbox_of(handle: str) -> Subscription:
    """Where all work of the seat waits."""
    return Subscription(topics.agent_inbox(handle), topics.inbox_group(handle))


def control_of(handle: str) -> Subscription:
    """Where starts and completions of the seat's detached runs wait."""
    return Subscription(topics.agent_control(handle), topics.control_group(handle))


def reflect_of(handle: str) -> Subscription:
    """Where the seat's finished turns wait to be reflected on."""
    return Subscription(topics.agent_reflect(handle), topics.reflect_group(handle))


async def ensure_mailboxes(queue: EventQueue, handles: Iterable[str]) -> None:
    """Create what is missing for the given seats, and the work queue that routes to them. Idempotent.

    Every node does it for the whole company, not for its own share: the node that serves a seat may not be the one
    that made its mailbox, and a publish that no subscription covers is gone. Raises ``Unavailable``.
    """
    wanted = [inbound_subscription()]
    for handle in handles:
        wanted += [inbox_of(handle), control_of(handle), reflect_of(handle)]
    await queue.ensure_subscriptions(wanted)
