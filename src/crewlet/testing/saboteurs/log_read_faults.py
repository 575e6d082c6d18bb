"""Saboteurs of reads, of what is left in a log, and of what is taken away."""

from __future__ import annotations

from collections.abc import Sequence

from crewlet.base.errors import Unavailable
from crewlet.queue import Logged, LogRecord, LogUnreadable, Tail
from crewlet.testing.contracts.log_reads import LogReads, LogRemains, LogTrims
from crewlet.testing.saboteurs.log_saboteur import LogSaboteur

__all__ = ["LOG_READ_FAULTS"]


class EmptyIsUnknown(LogSaboteur):
    """Of a log that never was nobody says anything."""

    caught_by = LogReads.test_a_log_that_never_was_is_empty

    async def tail(self, seat: str) -> Tail:
        tail = await self.twin.tail(seat)
        if not tail.sequence:
            raise Unavailable(f"{seat}: no log")
        return tail


class TailsNameTheFirst(LogSaboteur):
    """The tail has the id of the first record of the last append."""

    caught_by = LogReads.test_a_tail_names_the_last_record_whoever_added_it

    async def tail(self, seat: str) -> Tail:
        tail = await self.twin.tail(seat)
        held = self.stream.of(seat)
        records = held[-1][1].records if held else ()
        return Tail(tail.sequence, records[0].id if records else "")


class ReadsBeginAt(LogSaboteur):
    """A read begins with what it names."""

    caught_by = LogReads.test_a_read_begins_behind_what_it_names

    async def read(self, seat: str, *, after: int = 0) -> list[Logged]:
        return await self.twin.read(seat, after=max(after - 1, 0))


class ReadsAreOneBehind(LogSaboteur):
    """A reader that has not heard of the last append leaves it out."""

    caught_by = LogReads.test_what_is_acknowledged_is_read_whoever_leads

    mine = ""

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        self.mine = records[-1].id
        return await self.twin.append(seat, records, expected=expected)

    async def tail(self, seat: str) -> Tail:
        tail = await self.twin.tail(seat)
        records = await self.twin.read(seat)
        if tail.id == self.mine or len(records) < 2:
            return tail
        return Tail(records[-2].sequence, records[-2].id)


class BeginningsHinder(LogSaboteur):
    """Nobody adds on top of an append that has no end."""

    caught_by = LogRemains.test_an_append_without_its_end_does_not_exist_and_hinders_no_other

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        tail = self.stream.tail(seat)
        if tail.sequence and not tail.id:
            raise Unavailable(f"{seat}: somebody is adding to its log")
        return await self.twin.append(seat, records, expected=expected)


class GarbageIsNothing(LogSaboteur):
    """What cannot be read is passed over."""

    caught_by = LogRemains.test_what_is_no_record_is_said_where_it_stands

    async def read(self, seat: str, *, after: int = 0) -> list[Logged]:
        try:
            return await self.twin.read(seat, after=after)
        except LogUnreadable as said:
            return await self.twin.read(seat, after=said.sequence)


class UnreadableHereIsUnreadableThere(LogSaboteur):
    """What cannot be read is said of the end of the log."""

    caught_by = LogRemains.test_an_end_without_its_beginning_is_said_where_it_stands

    async def read(self, seat: str, *, after: int = 0) -> list[Logged]:
        try:
            return await self.twin.read(seat, after=after)
        except LogUnreadable as said:
            raise LogUnreadable(seat, said.sequence + 1, "somewhere") from said


class EndsAreRecords(LogSaboteur):
    """An end is a record, with or without its beginning."""

    caught_by = LogRemains.test_an_end_that_outlived_its_beginning_is_over

    async def read(self, seat: str, *, after: int = 0) -> list[Logged]:
        held = [(sequence, piece) for sequence, piece in self.stream.of(seat) if sequence > after]
        return [Logged(sequence, record.id, record.payload) for sequence, piece in held for record in piece.records]


class TrimsOneMore(LogSaboteur):
    """A trim takes the append behind what is over, too, unless it is the last."""

    caught_by = LogTrims.test_a_trim_takes_what_is_over_and_nothing_behind_it

    async def trim(self, seat: str, *, through: int) -> None:
        behind = [record.sequence for record in await self.twin.read(seat) if record.sequence > through]
        await self.twin.trim(seat, through=behind[0] if behind else through)


class TrimsBeginnings(LogSaboteur):
    """Of the newest append the last part alone is kept."""

    caught_by = LogTrims.test_the_newest_append_is_never_trimmed

    async def trim(self, seat: str, *, through: int) -> None:
        await self.twin.trim(seat, through=through)
        self.stream.drop(seat, below=min(through + 1, self.stream.last(seat)))


class TrimsWhatHasNoEnd(LogSaboteur):
    """What has no end is taken away by a trim, whatever it stands on."""

    caught_by = LogTrims.test_a_trim_leaves_what_the_next_append_must_expect

    async def trim(self, seat: str, *, through: int) -> None:
        if self.stream.tail(seat).id:
            await self.twin.trim(seat, through=through)
        else:
            self.stream.drop(seat)


class ZeroIsEverything(LogSaboteur):
    """A trim through nothing takes all but the newest."""

    caught_by = LogTrims.test_a_trim_of_nothing_is_harmless

    async def trim(self, seat: str, *, through: int) -> None:
        await self.twin.trim(seat, through=through or self.stream.last(seat))


class PurgesKeepTheNewest(LogSaboteur):
    """A purge is a trim."""

    caught_by = LogTrims.test_a_purged_log_begins_anew_above_what_it_was

    async def purge(self, seat: str) -> None:
        await self.twin.trim(seat, through=self.stream.last(seat))


LOG_READ_FAULTS: tuple[type[LogSaboteur], ...] = (
    EmptyIsUnknown,
    TailsNameTheFirst,
    ReadsBeginAt,
    ReadsAreOneBehind,
    BeginningsHinder,
    GarbageIsNothing,
    UnreadableHereIsUnreadableThere,
    EndsAreRecords,
    TrimsOneMore,
    TrimsBeginnings,
    TrimsWhatHasNoEnd,
    ZeroIsEverything,
    PurgesKeepTheNewest,
)
