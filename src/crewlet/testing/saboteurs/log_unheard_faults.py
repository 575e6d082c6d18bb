"""Saboteurs of appends that nobody heard of at first, and of logs that were lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from crewlet.backends.memory import Piece
from crewlet.base.errors import Unavailable
from crewlet.queue import LogRecord, Superseded, Tail
from crewlet.testing.contracts.log_unheard import LostLogs, UnheardAppends
from crewlet.testing.saboteurs.log_append_faults import EqualAppendsAreOne
from crewlet.testing.saboteurs.log_saboteur import LogSaboteur

__all__ = ["LOG_UNHEARD_FAULTS"]


class UnheardIsUnknown(LogSaboteur):
    """An answer that was lost is not looked for."""

    caught_by = UnheardAppends.test_an_append_whose_answer_was_lost_is_done_once

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        is_spoiled = self.twin.link.next_write == "lost reply"
        at = await self.twin.append(seat, records, expected=expected)
        if is_spoiled:
            raise Unavailable(f"{seat}: no answer")
        return at


class LateIsOnTop(LogSaboteur):
    """What arrives late goes on top of whatever stands."""

    caught_by = UnheardAppends.test_an_append_that_arrives_late_is_done_once

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        if self.twin.link.next_write == "withheld":
            late = Piece(next(self.stream.writes), 1, 1, 1, records=records)
            await self._withheld(seat, late)
        return await self.twin.append(seat, records, expected=expected)

    async def _withheld(self, seat: str, late: Piece) -> None:
        try:
            await self.twin.link.write("late", lambda: self.stream.keep(seat, late), landed=lambda _: False)
        except Unavailable:
            return


class LateBeginsAgain(LogSaboteur):
    """What arrives late begins a log that was purged meanwhile."""

    caught_by = UnheardAppends.test_a_first_append_that_arrives_late_begins_no_purged_log

    async def purge(self, seat: str) -> None:
        await self.twin.purge(seat)
        self.stream.forget_writes()


class UnknownIsTriedAgainOnTop(LogSaboteur):
    """Who does not know adds the same again."""

    caught_by = UnheardAppends.test_an_append_waits_for_the_link_and_is_done_once

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        is_spoiled = self.twin.link.next_write == "cut after"
        at = await self.twin.append(seat, records, expected=expected)
        return await self.append_anyway(seat, records) if is_spoiled else at


class OutOfReachIsSuperseded(LogSaboteur):
    """Who hears nothing is refused."""

    caught_by = UnheardAppends.test_nobody_answering_is_unknown_in_the_end_and_the_tail_tells

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        try:
            return await self.twin.append(seat, records, expected=expected)
        except Unavailable as lost:
            raise Superseded(seat, expected=expected, tail=Tail(0)) from lost


class OnlyTheTailIsMine(LogSaboteur):
    """What landed and has another on top of it is not found again."""

    caught_by = UnheardAppends.test_an_append_that_landed_counts_though_another_stands_on_top

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        at = await self.twin.append(seat, records, expected=expected)
        tail = self.stream.tail(seat)
        if tail.sequence != at:
            raise Superseded(seat, expected=expected, tail=tail)
        return at


class EqualIdsAreMine(EqualAppendsAreOne):
    """Who is refused and finds its own ids in the log takes them for its own, where nothing was lost."""

    caught_by = UnheardAppends.test_what_somebody_else_appended_is_never_taken_for_ones_own


class LongAppendsGoOn(LogSaboteur):
    """A long append that was cut short begins again on top of whatever stands."""

    caught_by = UnheardAppends.test_a_long_append_is_cut_short_by_another_writer

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        try:
            return await self.twin.append(seat, records, expected=expected)
        except Superseded:
            if sum(len(record.payload) for record in records) < 1000:
                raise
            return await self.append_anyway(seat, records)


class GivenUpIsRepeated(LogSaboteur):
    """Who is given up by its caller puts the whole on top before it goes."""

    caught_by = UnheardAppends.test_an_append_given_up_by_its_caller_lands_once_or_not_at_all

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        try:
            return await self.twin.append(seat, records, expected=expected)
        except asyncio.CancelledError:
            for _ in range(2):
                self.stream.keep(seat, Piece(next(self.stream.writes), 1, 1, 1, records=records))
            raise


class EverySeventhIsTwice(LogSaboteur):
    """An append in a while is done twice."""

    caught_by = UnheardAppends.test_through_changes_of_leader_each_append_is_done_once

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        at = await self.twin.append(seat, records, expected=expected)
        self.shared.count += 1
        return await self.append_anyway(seat, records) if self.shared.count % 7 == 0 else at


class LostIsUnknown(LogSaboteur):
    """Of a log that was lost nobody says anything."""

    caught_by = LostLogs.test_a_holder_learns_from_its_next_append_that_the_log_was_lost

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        try:
            return await self.twin.append(seat, records, expected=expected)
        except Superseded as refused:
            if refused.tail.sequence >= expected:
                raise
            raise Unavailable(f"{seat}: its log is gone") from refused


class LostBeginsAtOne(LogSaboteur):
    """A log that was lost counts from one again."""

    caught_by = LostLogs.test_a_log_made_anew_never_comes_to_a_sequence_that_was

    async def append(self, seat: str, records: Sequence[LogRecord], *, expected: int) -> int:
        base = self.stream.born_at
        at = await self.twin.append(seat, records, expected=expected + base if expected else 0)
        return at - base


LOG_UNHEARD_FAULTS: tuple[type[LogSaboteur], ...] = (
    UnheardIsUnknown,
    LateIsOnTop,
    LateBeginsAgain,
    UnknownIsTriedAgainOnTop,
    OutOfReachIsSuperseded,
    OnlyTheTailIsMine,
    EqualIdsAreMine,
    LongAppendsGoOn,
    GivenUpIsRepeated,
    EverySeventhIsTwice,
    LostIsUnknown,
    LostBeginsAtOne,
)
