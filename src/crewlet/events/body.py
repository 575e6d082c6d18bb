"""The base of every typed event body, and the register of types this build knows."""

from __future__ import annotations

from typing import ClassVar, TypeVar

import msgspec

__all__ = ["ENVELOPE_FIELDS", "Body", "body_type", "body_types", "register"]

ENVELOPE_FIELDS = frozenset(
    {
        "id",
        "type",
        "timestamp",
        "source",
        "node",
        "trace_id",
        "span_id",
        "parent_span_id",
        "delegation_depth",
        "parent_turn_id",
        "delegation_chain",
        "payload",
    }
)


class Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The typed half of an event; its fields are written flat beside the envelope's."""

    event_type: ClassVar[str] = ""

    def summary(self) -> str:
        """Who did what, in a person's words."""
        return self.event_type

    def actor(self) -> str:
        """Who did it, or ``""`` where the body does not say."""
        return ""


_types: dict[str, type[Body]] = {}


_B = TypeVar("_B", bound=Body)


def register(body: type[_B]) -> type[_B]:
    """Make a body known under its ``event_type``; a class decorator. Refuses a second of one type."""
    name = body.event_type
    if not name or name in _types:
        message = f"{body.__name__}: event type {name!r} is empty or taken"
        raise ValueError(message)
    clash = ENVELOPE_FIELDS.intersection(body.__struct_fields__)
    if clash:
        message = f"{body.__name__}: the envelope owns {sorted(clash)}"
        raise ValueError(message)
    _types[name] = body
    return body


def body_type(name: str) -> type[Body] | None:
    """The type registered under ``name``, or ``None`` where this build knows none."""
    return _types.get(name)


def body_types() -> dict[str, type[Body]]:
    """Every registered type, by name."""
    return dict(_types)
