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
_ACK: Final = "$JS.ACK."
_SHORT_DOTS: Final = 8
_LONG_DOTS: Final = 10


@dataclass(frozen=True, slots=True)
class Marker:
    """A key was removed; nothing else is known of it since."""

    key: str
    revision: Revision
    written_at: datetime


Shown = Record | Marker
"""One message of a bucket."""


Place = tuple[int, Revision, datetime, int]
"""Where a delivered message stands: the number of the delivery, its revision, when it was written, how many wait."""


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
    """What the reply subject of a delivery says, ``$JS.ACK.…`` with or without domain; ``None`` for any other.

    Called for every message of every listing: it looks at no more than it must.
    """
    if not reply.startswith(_ACK):
        return None
    dots = reply.count(".")
    if dots == _SHORT_DOTS:
        _, seq, delivery, at_ns, pending = reply.rsplit(".", 4)
    elif dots >= _LONG_DOTS:
        _, _, _, _, _, seq, delivery, at_ns, pending = reply.removeprefix(_ACK).split(".")[:9]
    else:
        return None
    try:
        return int(delivery), Revision(int(seq)), _instant(int(at_ns)), int(pending)
    except ValueError:
        return None


def _instant(nanoseconds: int) -> datetime:
    # Rounded as the times in the leader's answers are, so that a record is the same from wherever it was read.
    return _EPOCH + timedelta(0, 0, (nanoseconds + 500) // 1000)
