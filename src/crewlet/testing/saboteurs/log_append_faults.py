"""Saboteurs of appends: what is added, on top of what, and what a full log says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crewlet.base.errors import PayloadTooLarge, Unavailable
from crewlet.queue import LogFull, Logged, LogRecord, Superseded, Tail
from crewlet.testing.contracts.log_appends import FullLogs, LogAppends
from crewlet.testing.saboteurs.log_saboteur import LogSaboteur

__all__ = ["LOG_APPEND_FAULTS"]


class PayloadsAreText(LogSaboteur):
    """What looks like the end of a line is none of the payload."""

    caught_by = LogAppends.test_what_one_node_appends_another_reads_as_it_was

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        stripped = [LogRecord(record.id, record.payload.strip(b"\x00\r\n")) for record in records]
        return await self.twin.append(seat, stripped, expected=expected)


class RecordsAreSorted(LogSaboteur):
    """The records of an append are kept by their ids."""

    caught_by = LogAppends.test_records_of_one_append_keep_their_order_and_share_its_sequence

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        return await self.twin.append(seat, sorted(records, key=lambda record: record.id), expected=expected)


class PartsAreRecords(LogSaboteur):
    """What is read of a long record is its first part."""

    caught_by = LogAppends.test_a_long_append_is_read_as_one

    async def read(self, seat: str, *, after: int = 0) -> list[Logged]:
        return [replace(record, payload=record.payload[:1000]) for record in await self.twin.read(seat, after=after)]


class RecordsAreAddedOneByOne(LogSaboteur):
    """An append is as many as it has records."""

    caught_by = LogAppends.test_a_long_append_is_there_whole_or_not_at_all

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        for record in records:
            expected = await self.twin.append(seat, [record], expected=expected)
        return expected


class RefusalsNameNothing(LogSaboteur):
    """Who is refused is not told what stands."""

    caught_by = LogAppends.test_an_append_on_top_of_something_else_is_refused_naming_what_stands

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        try:
            return await self.twin.append(seat, records, expected=expected)
        except Superseded as refused:
            raise Superseded(seat, expected=expected, tail=Tail(refused.tail.sequence)) from None


class EqualAppendsAreOne(LogSaboteur):
    """Who finds on top what it wanted to add takes it for its own."""

    caught_by = LogAppends.test_of_many_appends_that_expect_the_same_one_gets_through

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        try:
            return await self.twin.append(seat, records, expected=expected)
        except Superseded as refused:
            if refused.tail.id != records[-1].id:
                raise
            return refused.tail.sequence


class ExpectsAnything(LogSaboteur):
    """An append goes on top of whatever stands."""

    caught_by = LogAppends.test_every_append_of_many_writers_stands_on_what_its_writer_saw

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        try:
            return await self.twin.append(seat, records, expected=expected)
        except Superseded:
            return await self.append_anyway(seat, records)


class PurgesAll(LogSaboteur):
    """A purge takes every seat's log."""

    caught_by = LogAppends.test_seats_do_not_touch_each_other

    async def purge(self, seat: str) -> None:
        await self.twin.purge(seat)
        self.stream.lose()


class AnySizeAndNameWillDo(LogSaboteur):
    """What can be no append is sent, and refused by nobody."""

    caught_by = LogAppends.test_what_can_be_no_append_is_refused_before_anything_is_sent

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        try:
            return await self.twin.append(seat, records, expected=expected)
        except (ValueError, PayloadTooLarge) as error:
            raise Unavailable(str(error)) from error


class SeatsAreAnything(LogSaboteur):
    """A log of what can be no seat is empty."""

    caught_by = LogAppends.test_what_can_be_no_seat_is_refused_by_every_verb

    async def tail(self, seat: str) -> Tail:
        try:
            return await self.twin.tail(seat)
        except ValueError:
            return Tail(0)


class FullIsUnavailable(LogSaboteur):
    """Where there is no room nobody answers."""

    caught_by = FullLogs.test_a_full_log_refuses_by_name_at_once_and_keeps_what_stands

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        try:
            return await self.twin.append(seat, records, expected=expected)
        except LogFull as full:
            raise Unavailable(str(full)) from full


class FullForEver(LogSaboteur):
    """A log that was full once takes nothing more."""

    caught_by = FullLogs.test_a_log_takes_more_again_once_there_is_room

    is_full = False

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        if self.is_full:
            raise LogFull(seat, "full", sequence=self.stream.last(seat))
        try:
            return await self.twin.append(seat, records, expected=expected)
        except LogFull:
            self.is_full = True
            raise


LOG_APPEND_FAULTS: tuple[type[LogSaboteur], ...] = (
    PayloadsAreText,
    RecordsAreSorted,
    PartsAreRecords,
    RecordsAreAddedOneByOne,
    RefusalsNameNothing,
    EqualAppendsAreOne,
    ExpectsAnything,
    PurgesAll,
    AnySizeAndNameWillDo,
    SeatsAreAnything,
    FullIsUnavailable,
    FullForEver,
)
