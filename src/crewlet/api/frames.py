"""What the live stream sends: frames of a kind, its data and the time, as JSON text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from crewlet.api.event_rows import flat_event
from crewlet.events import Event
from crewlet.node.face import Health

__all__ = ["event_frame", "frame", "health_frame"]


def frame(kind: str, data: Mapping[str, Any], now: datetime) -> str:
    """One frame."""
    return msgspec.json.encode({"kind": kind, "data": data, "ts": now}).decode()


def event_frame(topic: str, event: Event, now: datetime) -> str:
    """One event, flat and uncut."""
    return frame("event", flat_event(topic, event), now)


def health_frame(health: Health, now: datetime) -> str:
    """How the process stands."""
    return frame("health", msgspec.to_builtins(health), now)
