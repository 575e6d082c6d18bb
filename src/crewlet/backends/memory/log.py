"""The log's twin: any number of clients, each on a link of its own, share one stream object."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from crewlet import topics
from crewlet.backends.memory.record_link import MemoryLink
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.queue import Log, LogFull, Logged, LogRecord, LogUnreadable, Superseded, Tail, checked_records

__all__ = ["MemoryLog", "MemoryLogStream", "Piece"]

_TRIED_AGAIN_S: Final = 0.05
_GAP: Final = 1_000_000
_RECORD_BYTES: Final = 64
"""What a record takes beside its bytes, more or less."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One message of a seat's log: the ``number``-th of the ``count`` pieces of an append, from 1.

    The last piece holds what the append adds. ``first`` is the sequence of the first one, 0 in that itself. A
    ``count`` of 0 is no piece of anything.
    """

    write: int
    number: int
    count: int
    size_bytes: int
    first: int = 0
    records: Sequence[LogRecord] = ()


@dataclass(frozen=True, slots=True)
class _Kept:
    sequence: int
    piece: Piece
    stored_s: float


class MemoryLogStream:
    """What the broker would hold of all seats' logs. While ``cut``, no client hears anything."""

    def __init__(self, clock: Clock, *, max_bytes: int = limits.JOURNAL_STREAM_BYTES) -> None:
        self.cut = False
        self.born_at = 0
        """The sequence before the first."""

        self.max_bytes = max_bytes
        self.writes = itertools.count(1)
        self._clock = clock
        self._last_sequence = 0
        self._kept: dict[str, list[_Kept]] = {}
        self._seen: set[tuple[int, int]] = set()

    @property
    def size_bytes(self) -> int:
        """What is held."""
        return sum(kept.piece.size_bytes for seat in self._kept.values() for kept in seat)

    def check_reachable(self) -> None:
        """Raises ``Unavailable`` while cut."""
        if self.cut:
            raise Unavailable("the logs: cut off")

    def of(self, seat: str) -> list[tuple[int, Piece]]:
        """What is held of a seat, by sequence."""
        oldest_s = self._clock.elapsed_s() - limits.JOURNAL_RETENTION_S
        held = self._kept.get(seat, [])
        while held and held[0].stored_s <= oldest_s:
            held.pop(0)
        return [(kept.sequence, kept.piece) for kept in held]

    def last(self, seat: str) -> int:
        """The sequence of a seat's last message; 0 for none."""
        held = self.of(seat)
        return held[-1][0] if held else 0

    def put(self, seat: str, piece: Piece, expected: int) -> int:
        """Store on top of ``expected``; returns where. Raises ``Superseded``, ``LogFull``.

        A piece that was stored before is not again, whatever has become of it.
        """
        last = self.last(seat)
        if last != expected or (piece.write, piece.number) in self._seen:
            raise Superseded(seat, expected=expected, tail=self.tail(seat))
        if self.size_bytes + piece.size_bytes > self.max_bytes:
            raise LogFull(seat, f"it holds {self.max_bytes} bytes at most", sequence=last)
        if piece.count:
            self._seen.add((piece.write, piece.number))
        return self.keep(seat, piece)

    def keep(self, seat: str, piece: Piece) -> int:
        """Store, whatever there is; returns where."""
        self._last_sequence += 1
        self._kept.setdefault(seat, []).append(_Kept(self._last_sequence, piece, self._clock.elapsed_s()))
        return self._last_sequence

    def tail(self, seat: str) -> Tail:
        """Where a seat's log ends."""
        held = self.of(seat)
        if not held:
            return Tail(0)
        sequence, piece = held[-1]
        return Tail(sequence, piece.records[-1].id if piece.records else "")

    def drop(self, seat: str, *, below: int | None = None) -> None:
        """Hold nothing of a seat below ``below``, or nothing at all."""
        self._kept[seat] = [kept for kept in self._kept.get(seat, []) if below is not None and kept.sequence >= below]

    def lose(self) -> None:
        """Everything is gone, as with a broker's memory; what comes is numbered behind it."""
        self._kept.clear()
        self.forget_writes()
        self._last_sequence += _GAP
        self.born_at = self._last_sequence

    def forget_writes(self) -> None:
        """The duplicate window is over: what was stored is not known again."""
        self._seen.clear()


class MemoryLog(Log):
    """One client of the logs; see ``Log``. ``link`` is there to be spoiled."""

    def __init__(
        self,
        stream: MemoryLogStream,
        *,
        link: MemoryLink | None = None,
        append_s: float = limits.JOURNAL_APPEND_S,
        part_max_bytes: int = limits.LOG_PART_MAX_BYTES,
    ) -> None:
        self.link = link or MemoryLink()
        self.stream = stream
        self._append_s = append_s
        self._part_max_bytes = part_max_bytes

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        """Add all or none; see ``Log``."""
        pieces = self._pieces(_checked_seat(seat), checked_records(seat, records))
        first, at = 0, expected
        deadline_s = asyncio.get_running_loop().time() + self._append_s
        for piece in pieces:
            at = await self._put(seat, _behind(piece, first), (expected, at), deadline_s)
            first = first or at
        return at

    async def tail(self, seat: str) -> Tail:
        """Where the log ends; see ``Log``."""
        _checked_seat(seat)
        await self._reach()
        return self.stream.tail(seat)

    async def read(self, seat: str, *, after: int = 0) -> list[Logged]:
        """The records behind ``after``; see ``Log``."""
        _checked_seat(seat)
        await self._reach()
        held = [(sequence, piece) for sequence, piece in self.stream.of(seat) if sequence > after]
        return _records(seat, held)

    async def trim(self, seat: str, *, through: int) -> None:
        """Remove what is over; see ``Log``."""
        _checked_seat(seat)
        await self._reach()
        held = self.stream.of(seat)
        if held:
            sequence, piece = held[-1]
            self.stream.drop(seat, below=min(through + 1, piece.first or sequence))

    async def purge(self, seat: str) -> None:
        """Remove all; see ``Log``."""
        _checked_seat(seat)
        await self._reach()
        self.stream.drop(seat)

    async def _put(self, seat: str, piece: Piece, on: tuple[int, int], deadline_s: float) -> int:
        expected, at = on
        while True:
            try:
                return await self._carried(seat, piece, at)
            except Superseded as refused:
                found = self._found(seat, piece, at)
                if found:
                    return found
                raise Superseded(seat, expected=expected, tail=refused.tail) from None
            except LogFull:
                raise
            except Unavailable as lost:
                if asyncio.get_running_loop().time() + _TRIED_AGAIN_S >= deadline_s:
                    raise Unavailable(f"{seat}: whether its log was added to is not known: {lost}") from lost
            await asyncio.sleep(_TRIED_AGAIN_S)

    async def _carried(self, seat: str, piece: Piece, at: int) -> int:
        await self._reach()
        await self.link.write(
            "the logs",
            lambda: self.stream.put(seat, piece, at),
            landed=lambda _: bool(self._found(seat, piece, at)),
        )
        found = self._found(seat, piece, at)
        if not found:
            raise Superseded(seat, expected=at, tail=self.stream.tail(seat))
        return found

    def _found(self, seat: str, piece: Piece, at: int) -> int:
        """Where ``piece`` lies right on top of ``at``; 0 where it does not."""
        above = next(((sequence, kept) for sequence, kept in self.stream.of(seat) if sequence > at), None)
        if above is None or (above[1].write, above[1].number) != (piece.write, piece.number):
            return 0
        return above[0]

    def _pieces(self, seat: str, records: Sequence[LogRecord]) -> list[Piece]:
        size = sum(len(record.payload) + len(record.id) + _RECORD_BYTES for record in records) + len(seat)
        sizes = [min(self._part_max_bytes, size - begun) for begun in range(0, size, self._part_max_bytes)]
        write, count = next(self.stream.writes), len(sizes)
        return [
            Piece(write, number, count, size_bytes, records=records if number == count else ())
            for number, size_bytes in enumerate(sizes, start=1)
        ]

    async def _reach(self) -> None:
        await self.link.pass_over("the logs")
        self.stream.check_reachable()


def _checked_seat(seat: str) -> str:
    topics.journal(seat)
    return seat


def _behind(piece: Piece, first: int) -> Piece:
    return Piece(piece.write, piece.number, piece.count, piece.size_bytes, first, piece.records)


def _records(seat: str, held: Sequence[tuple[int, Piece]]) -> list[Logged]:
    """The records of the appends that are whole. Raises ``LogUnreadable``."""
    records: list[Logged] = []
    before: Piece | None = None
    is_head = True
    for sequence, piece in held:
        if not piece.count:
            raise LogUnreadable(seat, sequence, "no piece of an append")
        goes_on = before is not None and (before.write, before.number + 1) == (piece.write, piece.number)
        is_head = is_head and piece.number > 1 and (before is None or goes_on)
        if piece.number > 1 and not goes_on and not is_head:
            raise LogUnreadable(seat, sequence, "a piece without the one before")
        if not is_head:
            records += [Logged(sequence, record.id, record.payload) for record in piece.records]
        before = piece
    return records
