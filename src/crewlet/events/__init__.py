"""The envelope, the event types by category, the codec, and what is stored and what is fed. Pure."""

from crewlet.events import types
from crewlet.events.body import Body, body_types, register
from crewlet.events.catalogue import (
    CATEGORIES,
    NOT_FED,
    NOT_STORED,
    Category,
    category_of,
    is_failed,
    is_fed,
    is_stored,
)
from crewlet.events.codec import MalformedEvent, decode, encode
from crewlet.events.envelope import Event, new_event

__all__ = [
    "CATEGORIES",
    "NOT_FED",
    "NOT_STORED",
    "Body",
    "Category",
    "Event",
    "MalformedEvent",
    "body_types",
    "category_of",
    "decode",
    "encode",
    "is_failed",
    "is_fed",
    "is_stored",
    "new_event",
    "register",
    "types",
]
