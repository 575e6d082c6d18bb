"""One event as one row: which facts stand in columns of their own, and who its parties are. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from crewlet.events import Body, Category, Event, category_of, encode, is_failed

__all__ = ["INSERT_EVENT", "INSERT_PARTY", "from_micros", "parties_of", "row_of", "to_micros"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MAX_INTEGER: Final = 2**63 - 1

# Read from the body, or from what is kept of one that this build does not know.
_TEXT_FIELDS: Final = (
    "actor_seat",
    "agent_id",
    "agent_handle",
    "task_id",
    "channel_id",
    "sender",
    "turn_id",
    "work_key",
    "conversation_key",
    "partition_key",
    "tool",
    "dir",
    "phase",
    "model",
    "provider_key",
)
_CONVERSATION: Final = _TEXT_FIELDS.index("conversation_key")
_INTEGER_FIELDS: Final = (
    "iteration",
    "duration_ms",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
)
_TAGS: Final = ("actor_seat", "tool", "dir", "integration", "conversation_key", "partition_key")
_ASK_PARTIES: Final = ("requester", "target", "responder", "sender", "recipient", "closed_by")

_COLUMNS: Final = (
    "id",
    "event_time",
    "event_type",
    "source",
    "category",
    "actor",
    "trace_id",
    "span_id",
    "parent_span_id",
    "topic",
    "summary",
    "node",
    "failed",
    "agent_role",
    "work_item",
    *_TEXT_FIELDS,
    *_INTEGER_FIELDS,
    "tags",
    "payload",
)
INSERT_EVENT: Final = (
    f"INSERT INTO crewlet_events ({', '.join(_COLUMNS)}) "  # noqa: S608 - the names above, nothing from outside
    f"VALUES ({', '.join('?' * len(_COLUMNS))}) ON CONFLICT (id) DO NOTHING"
)
INSERT_PARTY: Final = "INSERT INTO crewlet_event_parties (agent, event_time, event_id, event_seq) VALUES (?, ?, ?, ?)"


def to_micros(instant: datetime) -> int:
    """Microseconds since 1970, the resolution of the log; an instant without a zone is taken as UTC."""
    aware = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The instant, in UTC."""
    return _EPOCH + micros * _MICROSECOND


def row_of(topic: str, event: Event, conversation_key: str = "") -> tuple[str | int | None, ...]:
    """The values of one row, in the order of :data:`INSERT_EVENT`; the payload is the event as it is encoded.

    ``conversation_key`` is that of the turn which the event is of, where it names none itself.
    """
    texts, tags = _texts(event, _TEXT_FIELDS), _tags(event)
    if conversation_key and not texts[_CONVERSATION]:
        texts[_CONVERSATION] = tags[_TEXT_FIELDS[_CONVERSATION]] = conversation_key
    return (
        event.id,
        to_micros(event.timestamp),
        event.type,
        event.source,
        category_of(event.type) or "",
        event.actor,
        event.trace_id,
        event.span_id,
        event.parent_span_id,
        topic,
        event.summary,
        event.node,
        int(is_failed(event)),
        _text(event, "role") or _text(event, "agent_role"),
        _work_item(event),
        *texts,
        *(_integer(event, name) for name in _INTEGER_FIELDS),
        msgspec.json.encode(tags).decode(),
        encode(event).decode(),
    )


def parties_of(event: Event) -> tuple[str, ...]:
    """The seats that an event is about, sorted: a listing by seat finds it under each.

    The sender of a notification is no party: it may be anybody outside, under any name.
    """
    said = [_text(event, "agent_handle")]
    if category_of(event.type) is Category.A2A:
        said += [_text(event, name) for name in _ASK_PARTIES]
        said += [name for name in _participants(event) if isinstance(name, str)]
    return tuple(sorted({name for name in said if name}))


def _participants(event: Event) -> tuple[object, ...]:
    listed = _field(event, "participants")
    return tuple(listed) if isinstance(listed, (tuple, list)) else ()  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _work_item(event: Event) -> str | None:
    item = _field(event, "work_item")
    if not isinstance(item, dict):
        return None
    backend, number = item.get("backend"), item.get("id")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return f"{backend}:{number}" if backend and number else None


def _tags(event: Event) -> dict[str, str]:
    values = _texts(event, _TAGS)
    return {name: value for name, value in zip(_TAGS, values, strict=True) if value}


def _texts(event: Event, names: tuple[str, ...]) -> list[str | None]:
    if event.data is None or event.extra:
        return [_text(event, name) for name in names]
    # Of most columns a type has none: this is done for every row that is written.
    values: list[str | None] = [None] * len(names)
    for place, name in _places(type(event.data), names):
        value = getattr(event.data, name)
        values[place] = value if isinstance(value, str) and value else None
    return values


@lru_cache(maxsize=1024)
def _places(body: type[Body], names: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """Which of ``names`` a body of this type can have, each with its place among them."""
    return tuple((place, name) for place, name in enumerate(names) if hasattr(body, name))


def _text(event: Event, name: str) -> str | None:
    value = _field(event, name)
    return value if isinstance(value, str) and value else None


def _integer(event: Event, name: str) -> int | None:
    value = _field(event, name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if abs(value) <= _MAX_INTEGER else None


def _field(event: Event, name: str) -> object:
    return getattr(event.data, name, None) or event.extra.get(name)
