"""What of a seat's mail belongs together: one conversation of one source, else each event by itself. Pure."""

from __future__ import annotations

from crewlet.events import Event
from crewlet.events.types import ExternalNotification

__all__ = ["alone", "conversation_of", "partition_of"]


def alone(event: Event) -> str:
    """The key of what has no conversation, as a partition and as an identity: nothing later can have it (E-073)."""
    return f"event:{event.id}"


def partition_of(event: Event) -> str:
    """With what an event may be merged. Asks, answers and tasks stand alone, and so does what names no conversation.

    The identity is part of the key: whatever a source's prompt does, one partition has one conversation (E-071).
    """
    body = event.data
    if isinstance(body, ExternalNotification) and body.partition_key and body.conversation_identity:
        return f"{body.partition_key}\n{body.conversation_identity}"
    return alone(event)


def conversation_of(event: Event) -> str:
    """The conversation that an event belongs to for good, read from its own field alone (E-076)."""
    body = event.data
    named = body.conversation_identity if isinstance(body, ExternalNotification) else ""
    return named or alone(event)
