"""The log's contract: per seat a sequence of records that one writer at a time adds to, each on top of what it knows.

A seat's log is the journal of its turns. What a record says is its writer's business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from crewlet.base import limits
from crewlet.base.errors import Conflict, CrewletError, PayloadTooLarge, Unavailable

__all__ = ["Log", "LogFull", "LogRecord", "LogUnreadable", "Logged", "Superseded", "Tail", "checked_records"]

_ID: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class LogRecord:
    """What is added: ``id`` is its writer's own name for it, of printable ASCII without blanks."""

    id: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Logged:
    """A record as it is kept. Those that one append added have the same ``sequence``, and the order it named."""

    sequence: int
    id: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Tail:
    """Where a seat's log ends: what an append that is to come next must expect.

    ``sequence`` is 0 for a log without anything in it. ``id`` is that of the last record, where the log ends with one;
    empty where it ends with the beginning of an append that never came to its end.
    """

    sequence: int
    id: str = ""


class Superseded(Conflict):
    """Something else stands on top of the log than an append expected: it was refused, and ``tail`` is what stands.

    A tail above what was expected is another writer's, or the beginning of an append of one's own that failed. One
    below says that the log was taken away: purged, seven days old, or lost with a broker's memory.
    """

    def __init__(self, seat: str, *, expected: int, tail: Tail) -> None:
        self.seat = seat
        self.tail = tail
        super().__init__(seat, expected=expected, current=tail.sequence)


class LogFull(Unavailable):
    """The log has no room: what was to be added is not in it. It may be when there is room again.

    ``sequence`` is where the seat's log ends now, and what the next append must expect: the beginning of a long one
    that did not fit may stay behind until it is trimmed. ``at_limit`` as for ``MailboxFull``.
    """

    def __init__(self, seat: str, why: str, *, sequence: int, at_limit: bool = True) -> None:
        self.seat = seat
        self.sequence = sequence
        self.at_limit = at_limit
        super().__init__(f"{seat}: not added to its log, there is no room for it: {why}")


class LogUnreadable(CrewletError):
    """What stands at ``sequence`` of a seat's log is no record that this engine reads; asking again will not help.

    ``read`` after that sequence goes on behind it, and appends are not hindered.
    """

    def __init__(self, seat: str, sequence: int, why: str) -> None:
        self.seat = seat
        self.sequence = sequence
        super().__init__(f"{seat}: its log cannot be read at {sequence}: {why}")


class Log(Protocol):
    """The logs of all seats, each apart from the others; a seat is named by its handle.

    Sequences grow and never come again, not even in a log that was lost and begins anew. What is older than seven days
    goes, the newest too: who expects what has gone is :class:`Superseded` with a tail below it. Each verb raises
    ``ValueError`` for what can be no handle, and ``Unavailable`` where nobody leads or answers.
    """

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        """Add ``records``, all or none, where the seat's log ends with ``expected``; returns where it ends now.

        Of any number of writers that expect the same, one gets through. An answer that is lost is looked for at the
        leader: an append that landed counts, however it was heard of, and none lands twice, however late a part of it
        arrives. Where nobody answers the same is tried again for ``limits.JOURNAL_APPEND_S``.

        Raises :class:`Superseded`, and :class:`LogFull` at once. Raises ``Unavailable`` when the time is over: it may
        be there, whole or without its end, and :meth:`tail` tells. Raises ``PayloadTooLarge`` above
        ``limits.LOG_APPEND_MAX_BYTES`` and ``ValueError`` for no record or an id that is none, before anything is sent.
        """
        ...

    async def tail(self, seat: str) -> Tail:
        """Where the log ends, as its leader says: at or behind every append of this client that was acknowledged.

        A leader that was cut off may leave out what others added in the last ten seconds or so; nobody appends there.
        """
        ...

    async def read(self, seat: str, *, after: int = 0) -> list[Logged]:
        """The records behind ``after``, in order, through the tail as it was when this was asked.

        What has no end does not exist, and neither does what has lost its beginning to age or to a trim. Raises
        :class:`LogUnreadable` where anything else stands: nothing is passed over in silence. Raises ``Unavailable``
        where the log goes away while it is read.
        """
        ...

    async def trim(self, seat: str, *, through: int) -> None:
        """Remove what stands at or below ``through``, but never the newest append, so that what it must be stays known.

        Harmless when repeated, and when it arrives late.
        """
        ...

    async def purge(self, seat: str) -> None:
        """Remove the seat's log, the newest too: the seat is no more. An append that expects 0 begins another."""
        ...


def checked_records(seat: str, records: Sequence[LogRecord]) -> Sequence[LogRecord]:
    """``records``, if they can be appended. Raises ``ValueError``, ``PayloadTooLarge``."""
    if not records:
        raise ValueError(f"{seat}: an append of nothing")
    for record in records:
        if len(record.id) > limits.LOG_RECORD_ID_MAX_CHARS or not _ID.fullmatch(record.id):
            raise ValueError(f"{seat}: {record.id[:40]!r} cannot be the id of a record")
    size = sum(len(record.payload) for record in records)
    if size > limits.LOG_APPEND_MAX_BYTES:
        raise PayloadTooLarge(seat, size=size, limit=limits.LOG_APPEND_MAX_BYTES)
    return records
