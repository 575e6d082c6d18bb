"""What a bucket's messages say: a live record or a removal marker. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from crewlet.backends.nats.jetstream_types import StoredMessage
from crewlet.coordination import Record, Revision

__all__ = ["OPERATION", "REMOVED", "Marker", "Place", "Shown", "is_marker", "place", "record_of", "shown_of"]

OPERATION: Final = "KV-Operation"
REMOVED: Final = "DEL"
_REMOVAL_REASON: Final = "Nats-Marker-Reason"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHORT_MARK: Final = 9
_LONG_MARK: Final = 11


@dataclass(frozen=True, slots=True)
class Marker:
    """A key was removed; nothing else is known of it since."""

    key: str
    revision: Revision
    written_at: datetime


Shown = Record | Marker
"""One message of a bucket."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a delivered message stands: the number of the delivery, its revision, and whether none waits behind it."""

    delivery: int
    revision: Revision
    written_at: datetime
    is_last: bool


def is_marker(headers: Mapping[str, str]) -> bool:
    """Whether a message with these headers removes its key: ours, and those of the broker and of other tools."""
    return OPERATION in headers or _REMOVAL_REASON in headers


def shown_of(key: str, message: StoredMessage) -> Shown:
    """What the leader holds of ``key``."""
    if is_marker(message.headers):
        return Marker(key, Revision(message.seq), message.time)
    return Record(key, message.data, Revision(message.seq), message.time)


def record_of(key: str, message: StoredMessage | None) -> Record | None:
    """The live record, or ``None`` where there is none or a marker."""
    shown = None if message is None else shown_of(key, message)
    return shown if isinstance(shown, Record) else None


def place(reply: str) -> Place | None:
    """What the reply subject of a delivery says, ``$JS.ACK.…`` with or without domain; ``None`` for any other."""
    tokens = reply.split(".")
    count = len(tokens)
    at = 5 if count == _SHORT_MARK else 7
    if not (count == _SHORT_MARK or count >= _LONG_MARK) or tokens[1] != "ACK":
        return None
    try:
        return Place(
            int(tokens[at + 1]), Revision(int(tokens[at])), _instant(int(tokens[at + 2])), tokens[at + 3] == "0"
        )
    except ValueError:
        return None


def _instant(nanoseconds: int) -> datetime:
    # Rounded as the times in the leader's answers are, so that a record is the same from wherever it was read.
    return _EPOCH + timedelta(microseconds=(nanoseconds + 500) // 1000)
