"""Saboteurs of watches: what they tell after their answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from crewlet.coordination import Change, Record, Revision, Watch
from crewlet.testing.contracts import Watches
from crewlet.testing.saboteurs.record_saboteur import RecordSaboteur, WatchFault, WatchSaboteur

__all__ = ["WATCH_FAULTS"]


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


WATCH_FAULTS: tuple[type[RecordSaboteur], ...] = (
    ChangesSwapPlaces,
    RemovalsAreSilent,
    EveryClassIsTold,
    TheAnswerIsToldAgain,
    TheGapIsLost,
    PositionsAreRead,
    WatchesEndTogether,
    OldAgeIsAChange,
    EverySecondChangeIsSkipped,
)
