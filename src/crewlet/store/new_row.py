"""One event on its way into the log: its row, made by whoever records it and written by the database's thread."""

from __future__ import annotations

from dataclasses import dataclass

from crewlet.events import Event
from crewlet.store.event_rows import INSERT_EVENT, INSERT_PARTY, parties_of, row_of, to_micros
from crewlet.store.sql import Connection, Value

__all__ = ["NewRow"]


@dataclass(frozen=True, slots=True)
class NewRow:
    """What is to stand in the log for one event: its columns, and the seats under which it is found."""

    event_id: str
    micros: int
    columns: tuple[Value, ...]
    parties: tuple[str, ...]

    @staticmethod
    def of(topic: str, event: Event, conversation_key: str = "") -> NewRow:
        """The row of ``event``, published on ``topic``; ``conversation_key`` as for :func:`row_of`."""
        columns = row_of(topic, event, conversation_key)
        return NewRow(event.id, to_micros(event.timestamp), columns, parties_of(event))

    def insert(self, connection: Connection) -> bool:
        """Write it; false where its event is a row already, and nothing changes."""
        connection.execute(INSERT_EVENT, self.columns)
        if connection.changes() == 0:
            return False
        seq = connection.last_insert_rowid()
        for agent in self.parties:
            connection.execute(INSERT_PARTY, (agent, self.micros, self.event_id, seq))
        return True
