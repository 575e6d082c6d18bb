"""The schema of the node's database as a list of numbered steps; the file remembers how many it has taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crewlet.base.errors import StartRefused
from crewlet.store.sql import Connection

__all__ = ["MIGRATIONS", "migrate"]

_APPLICATION_ID: Final = 0x4352574C  # "CRWL"

# Each index is a page more in every commit, so there are few: categories are found by their types, and the parties are
# clustered by seat and time. The payload comes last: SQLite walks a row's overflow pages for every column behind it.
_EVENT_LOG: Final = """
CREATE TABLE crewlet_events (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    event_time INTEGER NOT NULL,
    event_type TEXT NOT NULL,
    source TEXT NOT NULL,
    category TEXT NOT NULL,
    actor TEXT NOT NULL,
    actor_seat TEXT,
    agent_id TEXT,
    agent_role TEXT,
    agent_handle TEXT,
    task_id TEXT,
    channel_id TEXT,
    sender TEXT,
    trace_id TEXT NOT NULL,
    span_id TEXT NOT NULL,
    parent_span_id TEXT NOT NULL,
    topic TEXT NOT NULL,
    summary TEXT NOT NULL,
    node TEXT NOT NULL,
    failed INTEGER NOT NULL,
    turn_id TEXT,
    work_key TEXT,
    work_item TEXT,
    conversation_key TEXT,
    partition_key TEXT,
    tool TEXT,
    dir TEXT,
    phase TEXT,
    iteration INTEGER,
    model TEXT,
    provider_key TEXT,
    duration_ms INTEGER,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    tags TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX crewlet_events_id ON crewlet_events (id);
CREATE INDEX crewlet_events_time ON crewlet_events (event_time, id);
CREATE INDEX crewlet_events_type ON crewlet_events (event_type, event_time, id);
CREATE INDEX crewlet_events_trace ON crewlet_events (trace_id, event_time, id);
CREATE INDEX crewlet_events_turn ON crewlet_events (turn_id, event_time, id) WHERE turn_id IS NOT NULL;
CREATE INDEX crewlet_events_failed ON crewlet_events (event_time, id) WHERE failed = 1;
CREATE TABLE crewlet_event_parties (
    agent TEXT NOT NULL,
    event_time INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    event_seq INTEGER NOT NULL,
    PRIMARY KEY (agent, event_time, event_id)
) STRICT, WITHOUT ROWID;
"""

_BUCKET_MARKS: Final = """
CREATE TABLE crewlet_bucket_marks (
    bucket TEXT PRIMARY KEY,
    created_at TEXT NOT NULL,
    last_revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

# One entry a turn: what else the turn told is found by the turn's own index.
_CONVERSATIONS: Final = """
CREATE INDEX crewlet_events_conversation ON crewlet_events (conversation_key, turn_id)
    WHERE event_type = 'agent_turn_started';
"""

MIGRATIONS: Final[tuple[str, ...]] = (_EVENT_LOG, _BUCKET_MARKS, _CONVERSATIONS)
"""Each step's SQL, in order. A released step never changes; the schema changes by a further step."""


def migrate(connection: Connection, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Take the steps that the file lacks, all of them or none.

    Raises ``StartRefused`` for a file of another program, and for one that a newer release has written.
    """
    name = connection.filename
    owner, taken = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    is_empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
    if owner != _APPLICATION_ID and not is_empty:
        raise StartRefused(f"{name} is a database of another program", "give store.path another file")
    if taken > len(migrations):
        problem = f"{name} has schema {taken}, this release knows {len(migrations)}"
        raise StartRefused(problem, "start the newer release again, or give store.path another file")
    # One transaction: where a step fails, closing the connection takes all of them back.
    connection.execute("BEGIN IMMEDIATE")
    for step in migrations[taken:]:
        connection.execute(step).fetchall()
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}").fetchall()
    connection.execute(f"PRAGMA user_version = {len(migrations)}").fetchall()
    connection.execute("COMMIT").fetchall()


def _pragma(connection: Connection, name: str) -> int:
    value = connection.execute(f"PRAGMA {name}").get
    assert isinstance(value, int)
    return value
