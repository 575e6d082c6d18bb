"""The log on JetStream: a subject a seat, each part of an append put on top of the last message that is expected.

All reads are the stream leader's. Whose write is what is told by a mark of its own, never by equal bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

import structlog

from crewlet import topics
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import STREAM_FULL, WRONG_LAST_SEQUENCE, ApiError, StoredMessage
from crewlet.backends.nats.log_parts import Gathering, LogPart, cut, part_of, tail_of
from crewlet.backends.nats.queue_link import LinkWatch
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.ids import Ids
from crewlet.queue import Log, LogFull, Logged, LogRecord, Superseded, Tail, checked_records

__all__ = ["JetStreamLog"]

_log = structlog.get_logger(__name__)
_T = TypeVar("_T")


class JetStreamLog(Log):
    """One process's client of the logs; see ``Log``.

    The queue makes the stream, and makes it again where it is lost.
    """

    def __init__(
        self,
        api: JetStream,
        *,
        ids: Ids,
        append_s: float = limits.JOURNAL_APPEND_S,
        part_max_bytes: int = limits.LOG_PART_MAX_BYTES,
    ) -> None:
        self._api = api
        self._ids = ids
        self._append_s = append_s
        self._part_max_bytes = part_max_bytes
        self._link = LinkWatch(api.wire)
        self._seen: dict[str, int] = {}
        self._newest: dict[str, tuple[int, int]] = {}

    def close(self) -> None:
        """Listen to the link no longer."""
        self._link.close()

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        """Add all or none; see ``Log``."""
        write = self._ids.hex(16)
        parts = cut(checked_records(seat, records), write=write, room=self._room())
        topics.journal(seat)
        appending = _Appending(seat, expected)
        try:
            async with asyncio.timeout(self._append_s):
                for part, data in parts:
                    await self._put(appending, part, data)
        except TimeoutError:
            why = f"{seat}: whether its log was added to is not known after {self._append_s:g} s: {appending.trouble}"
            raise Unavailable(why) from None
        self._saw(seat, appending.at)
        self._put_there(seat, appending)
        return appending.at

    async def tail(self, seat: str) -> Tail:
        """Where the log ends; see ``Log``."""
        return tail_of(await self._last(seat))

    async def read(self, seat: str, *, after: int = 0) -> list[Logged]:
        """The records behind ``after``; see ``Log``. A request each."""
        end, at = (await self.tail(seat)).sequence, after
        gathering = Gathering(seat)
        while at < end:
            message = await self._next(seat, at)
            if message is None:
                raise Unavailable(f"{seat}: its log went away while it was read")
            gathering.take(message)
            at = message.seq
        return gathering.records

    async def trim(self, seat: str, *, through: int) -> None:
        """Remove what is over; see ``Log``."""
        newest = await self._newest_begins(seat, through)
        if newest is None or through <= 0:
            return
        # The broker removes what lies below.
        below = min(through + 1, newest)
        await self._said(self._api.stream_purge(topics.STREAM_JOURNAL, subject=topics.journal(seat), up_to_seq=below))

    async def purge(self, seat: str) -> None:
        """Remove all; see ``Log``."""
        await self._said(self._api.stream_purge(topics.STREAM_JOURNAL, subject=topics.journal(seat)))
        self._seen.pop(seat, None)
        self._newest.pop(seat, None)

    async def _newest_begins(self, seat: str, through: int) -> int | None:
        """Where the newest append begins, or one before it that a trim through ``through`` may not pass either."""
        first, at = self._newest.get(seat, (0, 0))
        if first and through <= at:
            # What this client added last: whatever lies behind it by now is newer.
            return first
        last = await self._last(seat)
        if last is None:
            return None
        part = part_of(last)
        return last.seq if part is None else part.first or last.seq

    def _put_there(self, seat: str, appending: _Appending) -> None:
        self._newest.pop(seat, None)
        self._newest[seat] = appending.first, appending.at
        while len(self._newest) > limits.LOG_SEATS_REMEMBERED_MAX:
            del self._newest[next(iter(self._newest))]

    async def _put(self, appending: _Appending, part: LogPart, data: bytes) -> None:
        """Have one more part on top. Raises ``Superseded``, ``LogFull``; goes on for as long as nobody answers."""
        attempt = 0
        while True:
            try:
                sequence = await self._sent(appending, part.behind(appending.first), data)
                if sequence is None:
                    sequence = await self._landed(appending, part)
            except LogFull:
                raise
            except Unavailable as error:
                appending.failed(error)
            else:
                if sequence is not None:
                    return appending.stored(sequence)
            await self._link.settled(attempt)
            attempt += 1

    async def _sent(self, appending: _Appending, part: LogPart, data: bytes) -> int | None:
        """Where it landed; ``None`` where the broker had it already, or something else on top, or says so."""
        try:
            ack = await self._api.publish(
                topics.journal(appending.seat),
                data,
                message_id=part.message_id,
                expected_last_subject_seq=appending.at,
                headers=part.headers(),
            )
        except ApiError as error:
            if error.err_code in WRONG_LAST_SEQUENCE:
                return None
            if error.err_code in STREAM_FULL:
                at_limit = error.description.startswith("maximum")
                raise LogFull(appending.seat, error.description, sequence=appending.at, at_limit=at_limit) from error
            raise Unavailable(str(error)) from error
        return None if ack.duplicate else ack.seq

    async def _landed(self, appending: _Appending, part: LogPart) -> int | None:
        """Where an attempt before this one landed; ``None`` where nothing is on top yet. Raises ``Superseded``."""
        found = await self._next(appending.seat, appending.at)
        if found is not None:
            there = part_of(found)
            if there is not None and there.message_id == part.message_id:
                return found.seq
        tail = await self.tail(appending.seat)
        if found is None and tail.sequence >= appending.at:
            # It lost against a write that is under way still, which may be its own.
            return None
        raise Superseded(appending.seat, expected=appending.expected, tail=tail)

    async def _last(self, seat: str) -> StoredMessage | None:
        """The last message. Raises ``Unavailable`` where the answer is older than what this client knows."""
        known = self._seen.get(seat, 0)
        last = await self._said(self._api.last_message(topics.STREAM_JOURNAL, topics.journal(seat)))
        sequence = 0 if last is None else last.seq
        if sequence < known:
            await self._believed(seat, known)
            if self._seen.get(seat, 0) == known:
                self._seen.pop(seat)
        self._saw(seat, sequence)
        return last

    async def _believed(self, seat: str, known: int) -> None:
        """Raises ``Unavailable`` unless the log can have gone: its leader has come as far as ``known`` was.

        A leader that was cut off has not, and one that keeps a stream made anew has come further.
        """
        info = await self._said(self._api.stream_info(topics.STREAM_JOURNAL))
        if info is None or not info.led or info.state.last_seq < known:
            raise Unavailable(f"{seat}: who answers for its log is behind what was acknowledged")

    async def _next(self, seat: str, after: int) -> StoredMessage | None:
        return await self._said(self._api.next_message(topics.STREAM_JOURNAL, after + 1, topics.journal(seat)))

    def _saw(self, seat: str, sequence: int) -> None:
        if sequence > self._seen.get(seat, 0):
            self._seen[seat] = sequence
        while len(self._seen) > limits.LOG_SEATS_REMEMBERED_MAX:
            del self._seen[next(iter(self._seen))]

    def _room(self) -> int:
        offered = self._api.wire.max_payload_bytes - limits.PUBLISH_HEADER_RESERVE_BYTES
        return min(offered, self._part_max_bytes) if offered > 0 else self._part_max_bytes

    async def _said(self, asked: Awaitable[_T]) -> _T:
        try:
            return await asked
        except ApiError as error:
            # No refusal says anything about what is stored.
            raise Unavailable(str(error)) from error


class _Appending:
    """How far one append has come: its first part lies at ``first``, its last so far at ``at``."""

    def __init__(self, seat: str, expected: int) -> None:
        self.seat = seat
        self.expected = expected
        self.first = 0
        self.at = expected
        self.trouble = ""

    def stored(self, sequence: int) -> None:
        """One more part lies at ``sequence``."""
        self.first = self.first or sequence
        self.at = sequence

    def failed(self, error: Unavailable) -> None:
        """Nobody answered; it is tried again, and said once."""
        if not self.trouble:
            _log.warning("log_append_waits", seat=self.seat, expected=self.expected, error=str(error))
        self.trouble = str(error)
