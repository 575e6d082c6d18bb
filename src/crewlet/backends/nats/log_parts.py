"""How an append is laid down: one body in parts that fit into messages, and put together again when it is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from crewlet.backends.nats.jetstream_types import StoredMessage
from crewlet.queue import Logged, LogRecord, LogUnreadable, Tail

__all__ = ["Gathering", "LogPart", "cut", "part_of", "tail_of"]

_WRITE: Final = "Crewlet-Write"
_PART: Final = "Crewlet-Part"
_FIRST: Final = "Crewlet-First"
_RECORD: Final = "Crewlet-Record"
_SEQUENCE: Final = re.compile(r"[0-9]{1,19}")
_OF: Final = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,8})")


class _Record(msgspec.Struct, frozen=True):
    id: str
    data: bytes


class _Body(msgspec.Struct, frozen=True, kw_only=True):
    """What one append adds; fields are only ever added."""

    records: list[_Record]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Body)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """One message of an append: the ``number``-th of ``count``, from 1.

    ``write`` is the append's own mark, which no other has. ``first`` is where its first part lies, 0 in that one.
    ``record`` is the id of its last record, on the last part alone.
    """

    write: str
    number: int
    count: int
    first: int = 0
    record: str = ""

    @property
    def is_last(self) -> bool:
        """Whether the append is whole with it."""
        return self.number == self.count

    @property
    def message_id(self) -> str:
        """What the broker knows it by."""
        return f"{self.write}.{self.number}"

    def behind(self, first: int) -> LogPart:
        """The same, where the first part of the append lies at ``first``."""
        return replace(self, first=first) if first != self.first else self

    def headers(self) -> dict[str, str]:
        """What goes with its bytes."""
        headers = {_WRITE: self.write, _PART: f"{self.number}/{self.count}"}
        if self.first:
            headers[_FIRST] = str(self.first)
        if self.record:
            headers[_RECORD] = self.record
        return headers


def cut(records: Sequence[LogRecord], *, write: str, room: int) -> list[tuple[LogPart, bytes]]:
    """The parts of an append of ``records``, each with at most ``room`` bytes."""
    body = _ENCODER.encode(_Body(records=[_Record(record.id, record.payload) for record in records]))
    chunks = [body[at : at + room] for at in range(0, len(body), room)]
    count = len(chunks)
    return [
        (LogPart(write=write, number=number, count=count, record=records[-1].id if number == count else ""), chunk)
        for number, chunk in enumerate(chunks, start=1)
    ]


def part_of(message: StoredMessage) -> LogPart | None:
    """Which part of which append a message is; ``None`` where it is none."""
    write, first = message.headers.get(_WRITE, ""), message.headers.get(_FIRST, "0")
    place = _OF.fullmatch(message.headers.get(_PART, ""))
    if not write or place is None or not _SEQUENCE.fullmatch(first):
        return None
    number, count = int(place[1]), int(place[2])
    if number > count:
        return None
    record = message.headers.get(_RECORD, "")
    return LogPart(write=write, number=number, count=count, first=int(first), record=record)


def tail_of(message: StoredMessage | None) -> Tail:
    """The end of a log whose last message is ``message``."""
    if message is None:
        return Tail(0)
    part = part_of(message)
    return Tail(message.seq, part.record if part is not None and part.is_last else "")


class Gathering:
    """Puts messages together again, given in order: the records of each append that is whole."""

    def __init__(self, seat: str) -> None:
        self._seat = seat
        self._begun: LogPart | None = None
        self._chunks: list[bytes] = []
        self._headless: str | None = ""
        self.records: list[Logged] = []

    def take(self, message: StoredMessage) -> None:
        """The next message. Raises ``LogUnreadable`` where it neither begins an append nor goes on with one."""
        part = part_of(message)
        if part is None:
            raise self._unreadable(message, "it is no part of an append")
        if part.number == 1:
            # What was begun before and has no end does not exist.
            self._chunks = []
        elif self._lost_its_beginning(part):
            return
        elif not self._goes_on(part):
            raise self._unreadable(message, f"part {part.number} of {part.count} without the one before")
        self._headless, self._begun = None, part
        self._chunks.append(message.data)
        if part.is_last:
            self._end(message)

    def _lost_its_beginning(self, part: LogPart) -> bool:
        """Whether an append before all that was taken has lost its first parts, to age or a trim."""
        if self._headless not in ("", part.write):
            return False
        self._headless = None if part.is_last else part.write
        return True

    def _goes_on(self, part: LogPart) -> bool:
        begun = self._begun
        return begun is not None and (begun.write, begun.number + 1) == (part.write, part.number)

    def _end(self, message: StoredMessage) -> None:
        body, self._chunks, self._begun = b"".join(self._chunks), [], None
        try:
            records = _DECODER.decode(body).records
        except msgspec.DecodeError as error:
            raise self._unreadable(message, str(error)) from error
        self.records += [Logged(message.seq, record.id, record.data) for record in records]

    def _unreadable(self, message: StoredMessage, why: str) -> LogUnreadable:
        return LogUnreadable(self._seat, message.seq, why)
