"""The node's own database: one file, one owner, one writer thread, and the event log in it."""

from crewlet.store.bucket_marks import BucketMark, BucketMarks
from crewlet.store.database import Database
from crewlet.store.event_filter import EventCursor, EventFilter
from crewlet.store.event_log import EventHistory, EventLog, StoredEvent
from crewlet.store.sql import Connection
from crewlet.store.turn_rows import TurnCursor, TurnRow, TurnState

__all__ = [
    "BucketMark",
    "BucketMarks",
    "Connection",
    "Database",
    "EventCursor",
    "EventFilter",
    "EventHistory",
    "EventLog",
    "StoredEvent",
    "TurnCursor",
    "TurnRow",
    "TurnState",
]
