"""What a reader of the event log asks for, and the SQL that finds it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from crewlet.base import limits
from crewlet.events import CATEGORIES, Category
from crewlet.store.event_rows import to_micros
from crewlet.store.sql import Value

__all__ = ["EventCursor", "EventFilter", "page_sql"]

_Condition = tuple[str, Sequence[Value]]

# By their starts: an entry a turn in an index of its own, where one for each of its events would cost every write.
_OF_CONVERSATION: Final = (
    "SELECT turn_id AS of_turn FROM crewlet_events WHERE event_type = 'agent_turn_started' AND conversation_key = ?"
)


@dataclass(frozen=True, slots=True, order=True)
class EventCursor:
    """A place in the log: nothing else stands at the same instant under the same id."""

    timestamp: datetime
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events, newest first. ``since`` is included, ``until`` and ``before`` are not. Empty is any.

    ``conversation`` is the identity of one: its turns' events.

    Raises ``ValueError`` for a ``limit`` outside of 1 to ``limits.EVENT_PAGE_MAX``, and for too many types.
    """

    types: tuple[str, ...] = ()
    category: Category | None = None
    seat: str = ""
    trace_id: str = ""
    turn_id: str = ""
    conversation: str = ""
    since: datetime | None = None
    until: datetime | None = None
    before: EventCursor | None = None
    failed: bool | None = None
    limit: int = 50

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= limits.EVENT_PAGE_MAX:
            raise ValueError(f"limit={self.limit} is not between 1 and {limits.EVENT_PAGE_MAX}")
        if len(self.types) > limits.EVENT_FILTER_TYPES_MAX:
            raise ValueError(f"{len(self.types)} types are more than {limits.EVENT_FILTER_TYPES_MAX}")


def page_sql(wanted: EventFilter) -> tuple[str, tuple[Value, ...]]:
    """A query whose first column is the ``seq`` of each row of the page, newest first, and its bindings."""
    types = _types(wanted)
    if wanted.seat:
        return _page_of_seat(wanted, types)
    if wanted.conversation:
        return _page_of_conversation(wanted, types)
    if types is None or wanted.trace_id or wanted.turn_id:
        return _page(wanted, types)
    # One arm for each type: each is read in order from the index, and no more of it than a page.
    arms = [_page(wanted, (event_type,)) for event_type in types] or [_page(wanted, ())]
    union = " UNION ALL ".join(f"SELECT * FROM ({query})" for query, _ in arms)  # noqa: S608 - values are bound
    values = [value for _, values in arms for value in values]
    return f"SELECT seq FROM ({union}) ORDER BY time DESC, id DESC LIMIT ?", (*values, wanted.limit)  # noqa: S608 - as above


def _types(wanted: EventFilter) -> tuple[str, ...] | None:
    if wanted.category is None:
        return wanted.types or None
    filed = [name for name, category in CATEGORIES.items() if category is wanted.category]
    return tuple(name for name in filed if not wanted.types or name in wanted.types)


def _page(wanted: EventFilter, types: Sequence[str] | None) -> tuple[str, tuple[Value, ...]]:
    where, values = _where([*_what(wanted, types), *_when(wanted, "event_time", "id")])
    query = f"SELECT seq, event_time AS time, id FROM crewlet_events{where}"  # noqa: S608 - values are bound
    return f"{query} ORDER BY event_time DESC, id DESC LIMIT ?", (*values, wanted.limit)


def _page_of_seat(wanted: EventFilter, types: Sequence[str] | None) -> tuple[str, tuple[Value, ...]]:
    """The parties carry the time too: a quiet seat's page is found without a walk through the busy ones' events."""
    asked = [("agent = ?", (wanted.seat,)), *_when(wanted, "p.event_time", "p.event_id"), *_what(wanted, types)]
    if wanted.conversation:
        asked.append((f"turn_id IN ({_OF_CONVERSATION})", (wanted.conversation,)))
    where, values = _where(asked)
    tables = "crewlet_event_parties AS p CROSS JOIN crewlet_events AS e ON e.seq = p.event_seq"
    query = f"SELECT e.seq FROM {tables}{where}"  # noqa: S608 - values are bound
    return f"{query} ORDER BY p.event_time DESC, p.event_id DESC LIMIT ?", (*values, wanted.limit)


def _page_of_conversation(wanted: EventFilter, types: Sequence[str] | None) -> tuple[str, tuple[Value, ...]]:
    """Its turns are looked up first, so that an old conversation is found without a walk through what came after."""
    where, values = _where([*_what(wanted, types), *_when(wanted, "e.event_time", "e.id")])
    turns = f"SELECT DISTINCT of_turn FROM ({_OF_CONVERSATION})"  # noqa: S608 - values are bound
    tables = f"({turns}) CROSS JOIN crewlet_events AS e ON e.turn_id = of_turn"
    query = f"SELECT e.seq FROM {tables}{where}"  # noqa: S608 - as above
    return f"{query} ORDER BY e.event_time DESC, e.id DESC LIMIT ?", (wanted.conversation, *values, wanted.limit)


def _where(asked: Sequence[_Condition]) -> tuple[str, list[Value]]:
    conditions = " AND ".join(condition for condition, _ in asked)
    return (f" WHERE {conditions}" if asked else ""), [value for _, values in asked for value in values]


def _what(wanted: EventFilter, types: Sequence[str] | None) -> Iterator[_Condition]:
    if types is not None and len(types) == 1:
        yield "event_type = ?", types
    elif types is not None:
        yield f"event_type IN ({', '.join('?' * len(types))})", types
    if wanted.trace_id:
        yield "trace_id = ?", (wanted.trace_id,)
    if wanted.turn_id:
        yield "turn_id = ?", (wanted.turn_id,)
    if wanted.failed is not None:
        yield ("failed = 1" if wanted.failed else "failed = 0"), ()


def _when(wanted: EventFilter, time: str, number: str) -> Iterator[_Condition]:
    if wanted.since is not None:
        yield f"{time} >= ?", (to_micros(wanted.since),)
    if wanted.until is not None:
        yield f"{time} < ?", (to_micros(wanted.until),)
    if wanted.before is not None:
        yield f"({time}, {number}) < (?, ?)", (to_micros(wanted.before.timestamp), wanted.before.id)
