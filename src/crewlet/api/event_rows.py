"""An event as the API shows it: one row of facts, with or without all that was published."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import msgspec

from crewlet.events import Event, category_of, encode, is_failed
from crewlet.store import EventCursor, StoredEvent

__all__ = ["MalformedCursor", "cursor_text", "event_row", "flat_event", "parse_cursor", "record", "stored_row"]


class MalformedCursor(ValueError):
    """A text that no page gave out as its ``next``."""


def event_row(topic: str, event: Event) -> dict[str, Any]:
    """The facts of one event; what a list shows."""
    return {
        "id": event.id,
        "type": event.type,
        "timestamp": event.timestamp,
        "source": event.source,
        "actor": event.actor,
        "summary": event.summary,
        "category": category_of(event.type) or "",
        "trace_id": event.trace_id,
        "span_id": event.span_id,
        "parent_span_id": event.parent_span_id,
        "topic": topic,
        "failed": is_failed(event),
        "node": event.node,
        "turn_id": _said(event, "turn_id"),
        "work_key": _said(event, "work_key"),
        "agent_handle": _said(event, "agent_handle"),
    }


def stored_row(stored: StoredEvent) -> dict[str, Any]:
    """The facts of one event and the tags that it is filed under."""
    return {**event_row(stored.topic, stored.event), "tags": {**stored.tags}}


def record(stored: StoredEvent) -> dict[str, Any]:
    """The row and its payload: the event as it was published, taken over without another decoding."""
    return {**stored_row(stored), "payload": msgspec.Raw(encode(stored.event))}


def flat_event(topic: str, event: Event) -> dict[str, Any]:
    """All that was published, flat, with the row's facts beside it; what the live stream carries."""
    return {**msgspec.json.decode(encode(event), type=dict[str, Any]), **event_row(topic, event)}


def cursor_text(cursor: EventCursor) -> str:
    """A place in the log as text for a query; its form is nobody's business."""
    return base64.urlsafe_b64encode(f"{cursor.timestamp.isoformat()} {cursor.id}".encode()).decode().rstrip("=")


def parse_cursor(text: str) -> EventCursor:
    """The place that ``text`` stands for. Raises ``MalformedCursor``."""
    try:
        padded = text + "=" * (-len(text) % 4)
        written, _, event_id = base64.b64decode(padded, altchars=b"-_", validate=True).decode().partition(" ")
        cursor = EventCursor(datetime.fromisoformat(written), event_id)
    except ValueError:
        cursor = None
    if cursor is None or not cursor.id or cursor.timestamp.tzinfo is None:
        raise MalformedCursor(f"{text[:40]!r} is not a `next` of an earlier page")
    return cursor


def _said(event: Event, name: str) -> str:
    value = getattr(event.data, name, event.extra.get(name))
    return value if isinstance(value, str) else ""
