"""Saboteurs of watches: what they begin with, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import NoReturn

from crewlet.base.errors import Unavailable
from crewlet.coordination import Change, Record, Revision, Watch
from crewlet.testing.contracts import WatchAnswers, WatchEnds
from crewlet.testing.saboteurs.record_saboteur import RecordSaboteur, WatchFault, WatchSaboteur

__all__ = ["WATCH_ANSWER_FAULTS", "WATCH_END_FAULTS"]


class AnswersAreEmpty(WatchSaboteur):
    """A watch begins with nothing: what stands comes as it changes."""

    caught_by = WatchAnswers.test_a_watch_begins_with_a_listing_of_its_class

    class fault(WatchFault):  # noqa: N801 - the attribute that the saboteur's base names
        @property
        def answer(self) -> Sequence[Record]:
            return ()


class OnePatternIsEnough(RecordSaboteur):
    """Of several patterns the first is watched."""

    caught_by = WatchAnswers.test_a_watch_takes_several_patterns

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[Watch]:
        async with self.twin.watch(*patterns[:1]) as watch:
            yield watch


class PositionsStartAhead(WatchSaboteur):
    """A watch counts itself."""

    caught_by = WatchAnswers.test_of_nothing_the_answer_is_empty_and_its_position_zero

    class fault(WatchFault):  # noqa: N801 - as above
        @property
        def position(self) -> Revision:
            return Revision(self.twin.position + 1)


class AnswersHoldMarkers(WatchSaboteur):
    """What was removed is in the answer, as a record without bytes."""

    caught_by = WatchAnswers.test_a_class_whose_records_were_all_removed_has_an_empty_answer

    class fault(WatchFault):  # noqa: N801 - as above
        @property
        def answer(self) -> Sequence[Record]:
            bucket = self.client.bucket
            now = bucket.time().latest
            return [*self.twin.answer, *(Record(key, b"", revision, now) for key, revision in bucket.markers(now))]


class AnswersLoseTheRewritten(RecordSaboteur):
    """What is rewritten before the pass comes to it is not in the answer."""

    caught_by = WatchAnswers.test_a_record_that_is_rewritten_all_the_time_is_in_every_answer

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[WatchFault]:
        before = {record.revision for pattern in patterns for record in await self.twin.list(pattern)}

        class Short(WatchFault):
            @property
            def answer(self) -> Sequence[Record]:
                return [record for record in self.twin.answer if record.revision in before]

        async with self.twin.watch(*patterns) as watch:
            yield Short(watch, self)


class NoClassIsWatched(RecordSaboteur):
    """A pattern that names no class is watched in vain."""

    caught_by = WatchAnswers.test_a_watch_of_what_names_no_class_is_refused

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[Watch]:
        async with self.twin.watch(patterns[0]) as watch:
            yield watch


class CutWatchesAreQuiet(WatchSaboteur):
    """A watch that is cut off waits for better times."""

    caught_by = WatchEnds.test_a_watch_that_is_cut_off_is_over_and_says_so

    class fault(WatchFault):  # noqa: N801 - as above
        async def next(self) -> Change:
            try:
                return await self.twin.next()
            except Unavailable:
                return await _for_ever()


class WhoWaitsIsForgotten(WatchSaboteur):
    """The end of a watch is seen by who asks it afterwards, and not by who waits."""

    caught_by = WatchEnds.test_who_waits_for_a_change_hears_of_the_cut

    class fault(WatchFault):  # noqa: N801 - as above
        async def next(self) -> Change:
            was_cut = self.client.twin.link.cut
            try:
                return await self.twin.next()
            except Unavailable:
                if was_cut:
                    raise
                return await _for_ever()


class UnreadIsEmpty(RecordSaboteur):
    """A watch whose listing fails begins with nothing."""

    caught_by = WatchEnds.test_a_watch_cannot_be_opened_by_who_is_cut_off

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[Watch]:
        cut, self.twin.link.cut = self.twin.link.cut, False
        async with self.twin.watch(*patterns) as watch:
            self.twin.link.cut = cut
            yield watch


class AnswersAreRemembered(RecordSaboteur):
    """A watch that is opened again begins with what the first began with."""

    caught_by = WatchEnds.test_what_happened_while_a_watch_was_over_is_in_the_next_ones_answer

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[WatchFault]:
        async with self.twin.watch(*patterns) as watch:
            first = self.shared.listed.setdefault(patterns[0], [*watch.answer])

            class Remembering(WatchFault):
                @property
                def answer(self) -> Sequence[Record]:
                    return first

            yield Remembering(watch, self)


class WatchesGoOn(RecordSaboteur):
    """A watch that was left goes on."""

    caught_by = WatchEnds.test_a_watch_that_was_left_hands_nothing_over

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[WatchFault]:
        class Awake(WatchFault):
            async def next(self) -> Change:
                try:
                    return await self.twin.next()
                except Unavailable:
                    live = self.client.bucket.live("seat.ada")
                    assert live is not None
                    return Change(live.key, live, live.revision)

        async with self.twin.watch(*patterns) as watch:
            yield Awake(watch, self)


async def _for_ever() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets this event")


WATCH_ANSWER_FAULTS: tuple[type[RecordSaboteur], ...] = (
    AnswersAreEmpty,
    OnePatternIsEnough,
    PositionsStartAhead,
    AnswersHoldMarkers,
    AnswersLoseTheRewritten,
    NoClassIsWatched,
)

WATCH_END_FAULTS: tuple[type[RecordSaboteur], ...] = (
    CutWatchesAreQuiet,
    WhoWaitsIsForgotten,
    UnreadIsEmpty,
    AnswersAreRemembered,
    WatchesGoOn,
)
