"""The event log of this node: what it published, once per event id, and the reads over it (C-197, E-192)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
import structlog

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.events import Event, MalformedEvent, decode, is_stored
from crewlet.events.types import AgentTurnStarted
from crewlet.store.database import Database
from crewlet.store.event_backlog import EventBacklog
from crewlet.store.event_filter import EventCursor, EventFilter, page_sql
from crewlet.store.event_rows import to_micros
from crewlet.store.new_row import NewRow
from crewlet.store.sql import Connection, Value
from crewlet.store.turn_rows import TurnCursor, TurnRow, read_turns

__all__ = ["EventHistory", "EventLog", "StoredEvent"]

_log = structlog.get_logger(__name__)

_ONE = "SELECT topic, payload, tags FROM crewlet_events WHERE seq = ?"
_BY_ID = "SELECT seq FROM crewlet_events WHERE id = ?"
_OF_TURN = "SELECT seq FROM crewlet_events WHERE turn_id = ? ORDER BY event_time, id LIMIT ?"
_OF_TRACE = "SELECT seq FROM crewlet_events WHERE trace_id = ? ORDER BY event_time, id LIMIT ?"
_OLDEST = "SELECT event_time, id FROM crewlet_events WHERE event_time < ? ORDER BY event_time, id LIMIT ?"
_PRUNE_EVENTS = "DELETE FROM crewlet_events WHERE (event_time, id) <= (?, ?)"
_NEXT_PARTY = "SELECT min(agent) FROM crewlet_event_parties WHERE agent > ?"
_PRUNE_PARTY = "DELETE FROM crewlet_event_parties WHERE agent = ? AND (event_time, event_id) <= (?, ?)"


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One row: the event as it was published, the topic it was published on, and what it is filed under besides."""

    topic: str
    event: Event
    tags: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)

    @property
    def cursor(self) -> EventCursor:
        """Its place in the log; a page goes on ``before`` the cursor of its last event."""
        return EventCursor(self.event.timestamp, self.event.id)


@dataclass(frozen=True, slots=True)
class EventHistory:
    """The events of one turn or trace, oldest first; ``truncated`` where later ones were left out."""

    events: tuple[StoredEvent, ...]
    truncated: bool


class EventLog:
    """Writes and reads events in the node's database. Every call raises ``Unavailable`` where that does not serve."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._backlog = EventBacklog(self.record)
        self._conversations = _Conversations()

    @property
    def trouble(self) -> str:
        """What is wrong with the log, in a sentence; empty while every row that it was told of is in it."""
        return self._backlog.trouble

    async def close(self) -> None:
        """Write what the database would not take before, if it takes it now; the database is closed by its owner."""
        await self._backlog.close()

    async def record(self, topic: str, event: Event) -> bool:
        """Make ``event`` a row, on the disk when this returns; false where its id is one already (nothing changes)."""
        # Made here, where its event has just been in hand: the writer's thread would have to fetch all of it anew.
        row = NewRow.of(topic, event, self._conversations.of(event))
        return await self._database.write(row.insert)

    def listener(self) -> Callable[[str, Event], Awaitable[None]]:
        """A publish listener that records the types which are rows, and no others.

        What the database does not take is kept, and written when it does: see :attr:`trouble`.
        """

        async def record_if_stored(topic: str, event: Event) -> None:
            if not is_stored(event.type):
                return
            try:
                await self.record(topic, event)
            except Unavailable as error:
                self._backlog.keep(topic, event, error)

        return record_if_stored

    async def events(self, wanted: EventFilter) -> list[StoredEvent]:
        """A page, newest first. A page of large events may hold fewer than its limit; an empty one is the end."""
        query, values = page_sql(wanted)

        def page(connection: Connection) -> list[StoredEvent]:
            events, _ = _load(connection, _numbers(connection, query, values))
            return events

        return await self._database.read(page)

    async def event(self, event_id: str) -> StoredEvent | None:
        """The row of one event, or ``None`` where this node holds none."""

        def one(connection: Connection) -> StoredEvent | None:
            events, _ = _load(connection, _numbers(connection, _BY_ID, (event_id,)))
            return events[0] if events else None

        return await self._database.read(one)

    async def turn(self, turn_id: str) -> EventHistory:
        """The rows of one run of a turn, oldest first."""
        return await self._history(_OF_TURN, turn_id)

    async def trace(self, trace_id: str) -> EventHistory:
        """The rows of one trace, oldest first."""
        return await self._history(_OF_TRACE, trace_id)

    async def turns(self, *, seat: str = "", limit: int = 50, before: TurnCursor | None = None) -> list[TurnRow]:
        """One row for each run, the latest start first; an empty page is the end.

        Raises ``ValueError`` for a ``limit`` outside of 1 to ``limits.EVENT_PAGE_MAX``.
        """
        if not 1 <= limit <= limits.EVENT_PAGE_MAX:
            raise ValueError(f"limit={limit} is not between 1 and {limits.EVENT_PAGE_MAX}")
        return await self._database.read(lambda connection: read_turns(connection, seat, limit, before))

    async def prune(self, before: datetime) -> int:
        """Delete the oldest rows from before an instant, a bounded number a call; returns how many: zero is the end."""
        return await self._database.write(lambda connection: _prune(connection, to_micros(before)))

    async def _history(self, query: str, key: str) -> EventHistory:
        def history(connection: Connection) -> EventHistory:
            numbers = list(_numbers(connection, query, (key, limits.EVENT_HISTORY_MAX + 1)))
            events, is_cut = _load(connection, numbers[: limits.EVENT_HISTORY_MAX])
            return EventHistory(tuple(events), truncated=is_cut or len(numbers) > limits.EVENT_HISTORY_MAX)

        return await self._database.read(history)


class _Conversations:
    """Which conversation each of the latest turns of this node is of, as its start said: a turn's rows are filed so."""

    def __init__(self) -> None:
        self._of_turn: OrderedDict[str, str] = OrderedDict()

    def of(self, event: Event) -> str:
        """The conversation of the turn that an event is of; empty where it is of none that is known."""
        body = event.data
        if isinstance(body, AgentTurnStarted):
            self._of_turn[body.turn_id] = body.conversation_key
            while len(self._of_turn) > limits.EVENT_LOG_TURNS_REMEMBERED_MAX:
                self._of_turn.popitem(last=False)
        return self._of_turn.get(getattr(body, "turn_id", ""), "")


def _prune(connection: Connection, before: int) -> int:
    oldest = connection.execute(_OLDEST, (before, limits.EVENT_PRUNE_MAX)).fetchall()
    if not oldest:
        return 0
    last = oldest[-1]
    connection.execute(_PRUNE_EVENTS, last)
    agent = ""
    while agent := connection.execute(_NEXT_PARTY, (agent,)).get:
        connection.execute(_PRUNE_PARTY, (agent, *last))
    return len(oldest)


def _numbers(connection: Connection, query: str, values: tuple[Value, ...]) -> Iterable[int]:
    return (row[0] for row in connection.execute(query, values))


def _load(connection: Connection, numbers: Iterable[int]) -> tuple[list[StoredEvent], bool]:
    """The rows of these numbers, up to ``EVENT_PAGE_MAX_BYTES`` and at least one; true where some were left out."""
    events: list[StoredEvent] = []
    room = limits.EVENT_PAGE_MAX_BYTES
    for number in numbers:
        topic, payload, tags = connection.execute(_ONE, (number,)).get
        room -= len(payload)
        if events and room < 0:
            return events, True
        try:
            events.append(StoredEvent(topic, decode(payload.encode()), msgspec.json.decode(tags, type=dict[str, str])))
        except MalformedEvent as error:
            _log.error("event_row_unreadable", seq=number, error=str(error))
    return events, False
