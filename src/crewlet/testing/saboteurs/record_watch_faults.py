"""Saboteurs of watches: what they begin with, what they tell, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import NoReturn

from crewlet.base.errors import Unavailable
from crewlet.coordination import Change, Record, Revision, Watch
from crewlet.testing.contracts import WatchAnswers, WatchEnds, Watches
from crewlet.testing.saboteurs.record_saboteur import RecordSaboteur, WatchFault, WatchSaboteur

__all__ = ["WATCH_FAULTS"]


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


class ChangesSwapPlaces(WatchSaboteur):
    """Of each two changes the later comes first."""

    caught_by = Watches.test_changes_come_in_the_order_in_which_they_were_written

    class fault(WatchFault):  # noqa: N801 - as above
        behind: Change | None = None

        async def next(self) -> Change:
            behind, self.behind = self.behind, None
            if behind is None:
                self.behind = await self.twin.next()
                return await self.twin.next()
            return behind


class RemovalsAreSilent(WatchSaboteur):
    """Only what stands is told."""

    caught_by = Watches.test_a_removal_is_a_change_to_nothing

    class fault(WatchFault):  # noqa: N801 - as above
        async def next(self) -> Change:
            while (change := await self.twin.next()).record is None:
                continue
            return change


class EveryClassIsTold(RecordSaboteur):
    """A watch tells what happens in the whole bucket."""

    caught_by = Watches.test_what_other_classes_do_is_not_told

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[Watch]:
        async with self.twin.watch(*patterns, "seat", "node.>") as watch:
            yield watch


class TheAnswerIsToldAgain(WatchSaboteur):
    """What the pass delivered comes as changes too."""

    caught_by = Watches.test_what_the_answer_holds_is_not_told_again

    class fault(WatchFault):  # noqa: N801 - as above
        told = 0

        async def next(self) -> Change:
            if self.told < len(self.twin.answer):
                record = self.twin.answer[self.told]
                self.told += 1
                return Change(record.key, record, record.revision)
            return await self.twin.next()


class TheGapIsLost(RecordSaboteur):
    """First the bucket is listed, and then it is watched."""

    caught_by = Watches.test_nothing_falls_between_the_answer_and_the_changes_and_nothing_comes_twice

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[WatchFault]:
        listed = [record for pattern in patterns for record in await self.twin.list(pattern)]

        class Early(WatchFault):
            @property
            def answer(self) -> Sequence[Record]:
                return listed

        async with self.twin.watch(*patterns) as watch:
            yield Early(watch, self)


class PositionsAreRead(WatchSaboteur):
    """A watch stands where its reader does."""

    caught_by = Watches.test_a_watch_of_every_class_gets_to_the_buckets_last_revision

    class fault(WatchFault):  # noqa: N801 - as above
        at = Revision(0)

        @property
        def position(self) -> Revision:
            return max([self.at, *(record.revision for record in self.twin.answer)])

        async def next(self) -> Change:
            change = await self.twin.next()
            self.at = change.revision
            return change


class WatchesEndTogether(RecordSaboteur):
    """A client's watches end with the first that is left."""

    caught_by = Watches.test_watches_of_one_client_do_not_touch_each_other

    @asynccontextmanager
    async def watch(self, *patterns: str) -> AsyncGenerator[Watch]:
        async with self.twin.watch(*patterns) as watch:
            yield watch
        self.twin.link.cut = True
        self.twin.link.cut = False


class OldAgeIsAChange(WatchSaboteur):
    """What grew too old is told as a removal."""

    caught_by = Watches.test_what_grows_too_old_makes_no_change

    class fault(WatchFault):  # noqa: N801 - as above
        told = False

        async def next(self) -> Change:
            for record in self.twin.answer:
                live = self.client.bucket.live(record.key)
                if not self.told and (live is None or live != record):
                    self.told = True
                    return Change(record.key, None, record.revision)
            return await self.twin.next()


class EverySecondChangeIsSkipped(WatchSaboteur):
    """A watch that is slow leaves changes out."""

    caught_by = Watches.test_after_a_change_of_leader_a_watch_goes_on_or_is_over

    class fault(WatchFault):  # noqa: N801 - as above
        async def next(self) -> Change:
            change = await self.twin.next()
            self.client.shared.count += 1
            return change if self.client.shared.count % 2 else await self.twin.next()


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


WATCH_FAULTS: tuple[type[RecordSaboteur], ...] = (
    AnswersAreEmpty,
    OnePatternIsEnough,
    PositionsStartAhead,
    AnswersHoldMarkers,
    AnswersLoseTheRewritten,
    NoClassIsWatched,
    ChangesSwapPlaces,
    RemovalsAreSilent,
    EveryClassIsTold,
    TheAnswerIsToldAgain,
    TheGapIsLost,
    PositionsAreRead,
    WatchesEndTogether,
    OldAgeIsAChange,
    EverySecondChangeIsSkipped,
    CutWatchesAreQuiet,
    WhoWaitsIsForgotten,
    UnreadIsEmpty,
    AnswersAreRemembered,
    WatchesGoOn,
)
