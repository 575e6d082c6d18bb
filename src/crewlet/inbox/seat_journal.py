"""One seat's journal as this tenure writes it: each entry on top of what stands, refused once somebody took it over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, Fenced, Unavailable
from crewlet.inbox.journal_entries import Ended, Entry, Resumed, UnreadableEntry, decode_entry, encode_entry
from crewlet.inbox.journal_state import LastTurn, last_turn_of
from crewlet.queue import Log, LogFull, LogRecord, LogUnreadable, Superseded, Tail

__all__ = ["JournalRead", "SeatJournal", "Standing"]

_log = structlog.get_logger(__name__)

Standing = Callable[[], Awaitable[bool]]
"""Whether the seat is still held under this tenure's epoch, as its lease says. Raises ``Unavailable``."""

_TAKE_OVERS_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class JournalRead:
    """What a take-over found: the last turn, if any, and why it cannot be known, if it cannot."""

    turn: LastTurn | None
    unreadable: str = ""


@dataclass(slots=True, eq=False)
class _Waiting:
    payload: bytes
    done: asyncio.Future[int] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class SeatJournal:
    """The writer of one seat's journal from a take-over to the end of the tenure.

    Entries that come while one is being written go together with the next write. Where anything else than this
    writer's own entry stands, the lease decides: a seat that is not ours any more is ``Fenced``. Ours, and the log was
    lost or ends with a torn write, the entry goes on top of what stands; on top of a stranger's it does not: what that
    says has to be taken over first.
    """

    def __init__(self, handle: str, log: Log, *, epoch: int, writer: str, standing: Standing, clock: Clock) -> None:
        self._handle = handle
        self._log = log
        self._epoch = epoch
        self._writer = f"{writer}."
        self._standing = standing
        self._clock = clock
        self._expected: int | None = None
        self._count = 0
        self._trimmed = 0
        self._waiting: list[_Waiting] = []
        self._writing = asyncio.Lock()
        self._worked: frozenset[str] = frozenset()
        self._is_taken_over = False

    @property
    def is_taken_over(self) -> bool:
        """Whether nothing stands in it that this writer has not read; else :meth:`take_over` comes first."""
        return self._is_taken_over

    @property
    def clock(self) -> Clock:
        """The clock that entries are stamped by."""
        return self._clock

    def worked(self, ids: Sequence[str]) -> frozenset[str]:
        """Those of ``ids`` that the last turn's end says are worked; stands in where the ledger cannot be read."""
        return self._worked.intersection(ids)

    def leave_open(self) -> None:
        """A turn of this writer broke off without an end: what stands is to be taken over before another begins."""
        self._is_taken_over = False

    async def take_over(self) -> JournalRead:
        """Refuse the predecessor from here on, then read what it left. Raises ``Fenced``, ``Unavailable``.

        What cannot be read is said and forgotten, and hinders nobody: S1's rules for a broken turn hold then.
        """
        resumed = encode_entry(Resumed(at=self._clock.now(), writer=self._writer, epoch=self._epoch))
        for _ in range(_TAKE_OVERS_MAX):
            tail = await self._log.tail(self._handle)
            # After the tail: a successor that this lease does not know of yet moves the tail, and this is refused.
            await self._require_standing()
            try:
                self._expected = await self._log.append(self._handle, [self._record(resumed)], expected=tail.sequence)
            except Superseded as moved:
                _log.info("journal_taken_over_meanwhile", seat=self._handle, sequence=moved.tail.sequence)
            except LogFull:
                if not await self._made_room(tail):
                    raise
            else:
                self._is_taken_over = True
                return await self._read()
        raise Unavailable(f"{self._handle}: its journal could not be taken over, others keep writing it")

    async def write(self, entry: Entry) -> int:
        """The entry is on record; returns its sequence. Raises ``Fenced``, ``Unavailable``, ``PayloadTooLarge``.

        After ``Unavailable`` it may be on record; whoever goes on with the turn reads it then.
        """
        waiting = _Waiting(encode_entry(entry))
        self._waiting.append(waiting)
        try:
            async with self._writing:
                while not waiting.done.done():
                    await self._write_some()
        finally:
            if waiting in self._waiting:
                # Whoever wanted it written is gone: it must not turn up among a later turn's entries.
                self._waiting.remove(waiting)
        return waiting.done.result()

    async def end(self, ended: Ended) -> int:
        """The turn's end is on record, and its ids count as worked from now on; returns its sequence."""
        sequence = await self.write(ended)
        self.count_worked(ended)
        return sequence

    def count_worked(self, ended: Ended) -> None:
        """The ids of an end that was acknowledged count as worked, whether or not the ledger says so."""
        if ended.outcome == "ack":
            self._worked = frozenset(ended.ids)

    async def trim(self, through: int) -> None:
        """Forget what stands through an end, the end aside; harmless, and a failure costs room alone."""
        if through <= self._trimmed:
            return
        try:
            await self._log.trim(self._handle, through=through)
        except CrewletError as error:
            _log.info("journal_not_trimmed", seat=self._handle, error=str(error))
        else:
            self._trimmed = through

    async def _write_some(self) -> None:
        batch = self._next_batch()
        self._waiting = self._waiting[len(batch) :]
        try:
            sequence = await self._append([self._record(each.payload) for each in batch])
        except CrewletError as error:
            # What was being sent may land all the same.
            self._expected = None
            for each in batch:
                each.done.set_exception(error)
                # Whoever waits for it hears of it; who is gone does not.
                each.done.exception()
            raise
        except BaseException:
            # One of their writers is called off and not the others: these write again. An entry twice says the same.
            self._expected = None
            self._waiting = [*batch, *self._waiting]
            raise
        for each in batch:
            each.done.set_result(sequence)

    def _next_batch(self) -> list[_Waiting]:
        """What goes together: no more than fits into one append, so that what does not fit costs nobody else."""
        batch, size = self._waiting[:1], len(self._waiting[0].payload)
        for each in self._waiting[1:]:
            size += len(each.payload)
            if size > limits.LOG_APPEND_MAX_BYTES:
                break
            batch.append(each)
        return batch

    async def _append(self, records: Sequence[LogRecord]) -> int:
        for _ in range(_TAKE_OVERS_MAX):
            expected = await self._known_tail()
            try:
                self._expected = await self._log.append(self._handle, records, expected=expected)
            except Superseded as superseded:
                await self._require_ours(superseded.tail)
                _log.warning("journal_moved", seat=self._handle, expected=expected, sequence=superseded.tail.sequence)
                self._expected = superseded.tail.sequence
            else:
                return self._expected
        raise Unavailable(f"{self._handle}: its journal could not be written, others keep writing it")

    async def _known_tail(self) -> int:
        if self._expected is None:
            tail = await self._log.tail(self._handle)
            await self._require_ours(tail)
            self._expected = tail.sequence
        return self._expected

    async def _require_ours(self, tail: Tail) -> None:
        """Pass over what this writer left itself, and under its lease a torn write and a log that is gone.

        A torn write may be a successor's that is under way, so that it says nothing by itself.
        """
        if tail.id.startswith(self._writer):
            return
        await self._require_standing()
        if tail.id:
            self._is_taken_over = False
            raise Unavailable(f"{self._handle}: somebody else wrote its journal; it has to be taken over first")

    async def _require_standing(self) -> None:
        if not await self._standing():
            raise Fenced(f"{self._handle} is held elsewhere: its journal is being written there")

    async def _read(self) -> JournalRead:
        try:
            found = [(each.sequence, decode_entry(each.payload)) for each in await self._log.read(self._handle)]
            turn = last_turn_of(found)
            if turn is not None:
                turn.require_readable()
        except (LogUnreadable, UnreadableEntry) as error:
            _log.error("journal_unreadable", seat=self._handle, error=str(error))
            if self._expected is not None:
                # Its events come back as any others: nobody may go on with it later, nor stumble over it again.
                await self.trim(self._expected)
            return JournalRead(None, unreadable=str(error))
        return JournalRead(turn)

    async def _made_room(self, tail: Tail) -> bool:
        """Remove what no take-over needs any more; whether there was anything."""
        found = await self._read()
        through = tail.sequence if found.turn is None else found.turn.begins_at - 1
        if through <= self._trimmed:
            return False
        await self.trim(through)
        return self._trimmed >= through

    def _record(self, payload: bytes) -> LogRecord:
        self._count += 1
        return LogRecord(f"{self._writer}{self._count}", payload)
