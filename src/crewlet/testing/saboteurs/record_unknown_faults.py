"""Saboteurs of the third answer: a no where nothing was heard, and a yes where nobody knows."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from crewlet.backends.memory import MemoryLink, MemoryRecordStore
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import Record, Revision, StoreTime
from crewlet.testing.contracts import SKEW_S, Histories, LateWrites, LostReplies, Unknowns
from crewlet.testing.saboteurs.record_saboteur import RecordSaboteur, Shared

__all__ = ["UNKNOWN_FAULTS"]

_LATER_S: Final = 0.01


class OutOfReachIsAbsent(RecordSaboteur):
    """What cannot be asked for is not there."""

    caught_by = Unknowns.test_no_verb_takes_a_store_out_of_reach_for_an_answer

    async def get(self, key: str) -> Record | None:
        try:
            return await self.twin.get(key)
        except Unavailable:
            return None


class AbsentCanBeRemovedUnasked(RecordSaboteur):
    """A removal that cannot be done leaves nothing behind, as far as anybody knows."""

    caught_by = Unknowns.test_no_verb_takes_a_store_out_of_reach_for_an_answer

    async def delete(self, key: str, *, expected: Revision) -> None:
        try:
            await self.twin.delete(key, expected=expected)
        except Unavailable:
            return


class ListsNothingUnasked(RecordSaboteur):
    """A class that cannot be read has no records."""

    caught_by = Unknowns.test_no_verb_takes_a_store_out_of_reach_for_an_answer

    async def list(self, pattern: str) -> list[Record]:
        try:
            return await self.twin.list(pattern)
        except Unavailable:
            return []


class BeginsAgainUnasked(RecordSaboteur):
    """A bucket that cannot be asked is empty."""

    caught_by = Unknowns.test_no_verb_takes_a_store_out_of_reach_for_an_answer

    async def last_revision(self) -> Revision:
        try:
            return await self.twin.last_revision()
        except Unavailable:
            return Revision(0)


class OutOfReachTheTimeIsOurs(RecordSaboteur):
    """Who cannot ask the store for its time looks at its own clock."""

    caught_by = Unknowns.test_what_is_told_of_the_time_out_of_reach_is_right_or_unknown

    async def time(self) -> StoreTime:
        try:
            return await self.twin.time()
        except Unavailable:
            told, skew = self.bucket.time(), timedelta(seconds=SKEW_S)
            return StoreTime(told.earliest - skew, told.latest - skew)


class GivenUpIsForGood(RecordSaboteur):
    """A listing that is given up leaves its client with half a pass."""

    caught_by = Unknowns.test_a_caller_that_gives_up_on_the_way_spoils_nothing_for_the_next

    async def list(self, pattern: str) -> list[Record]:
        try:
            found = await self.twin.list(pattern)
        except asyncio.CancelledError:
            self.shared.count += 1
            raise
        return found[self.shared.count :]


class _Counting(RecordSaboteur):
    """Hears of each time that its link is cut."""

    def __init__(self, twin: MemoryRecordStore, shared: Shared) -> None:
        super().__init__(twin, shared)
        twin.link.on_cut(self.cut_off)

    def cut_off(self) -> None:
        self.shared.count += 1


class OnceCutIsAlwaysCut(_Counting):
    """A client that was cut off answers nothing any more."""

    caught_by = Unknowns.test_once_the_link_is_whole_every_verb_answers_again

    async def list(self, pattern: str) -> list[Record]:
        if self.shared.count:
            raise Unavailable("it was cut off")
        return await self.twin.list(pattern)


class OneCutIsEverybodys(_Counting):
    """A client that is out of reach stands in the others' way."""

    caught_by = Unknowns.test_one_client_out_of_reach_is_no_others_trouble

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        if self.shared.count:
            raise Unavailable("somebody is cut off")
        return await self.twin.update(key, value, expected=expected)


class ToldAndNotKept(RecordSaboteur):
    """A leader tells of a write before its peers have it, and goes."""

    caught_by = Unknowns.test_through_a_change_of_leader_no_write_that_was_told_is_lost

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        self.shared.count += 1
        if self.shared.count % 5:
            return await self.twin.update(key, value, expected=expected)
        return Record(key, value, Revision(expected + 1), self.bucket.time().earliest)


class UnheardIsNotReadBack(RecordSaboteur):
    """A write whose reply was lost is unknown for good."""

    caught_by = LostReplies.test_a_write_whose_reply_was_lost_is_returned_as_written

    async def create(self, key: str, value: bytes) -> Record:
        unheard = self.twin.link.next_write != "arrives"
        created = await self.twin.create(key, value)
        if unheard:
            raise Unavailable("no answer in time")
        return created


class UnheardRemovalsAreRefused(RecordSaboteur):
    """A removal whose reply was lost is asked for again, and finds another revision."""

    caught_by = LostReplies.test_a_removal_whose_reply_was_lost_is_done

    async def delete(self, key: str, *, expected: Revision) -> None:
        unheard = self.twin.link.next_write != "arrives"
        await self.twin.delete(key, expected=expected)
        if unheard:
            raise Conflict(key, expected=expected, current=0)


class EqualBytesAreOnesOwn(RecordSaboteur):
    """Who heard nothing looks, and takes the bytes that it wanted to write for its own."""

    caught_by = LostReplies.test_what_somebody_else_wrote_is_never_taken_for_ones_own

    async def create(self, key: str, value: bytes) -> Record:
        try:
            return await self.twin.create(key, value)
        except Unavailable:
            live = await self.twin.get(key)
            if live is None or live.value != value:
                raise
            return live


class HopesForTheBest(RecordSaboteur):
    """A write that cannot be read back will have been done."""

    caught_by = LostReplies.test_a_write_that_cannot_be_read_back_is_unknown_though_it_landed

    async def create(self, key: str, value: bytes) -> Record:
        try:
            return await self.twin.create(key, value)
        except Unavailable:
            return Record(key, value, Revision(0), self.bucket.time().earliest)


class FearsTheWorst(RecordSaboteur):
    """A write that did not arrive in time was not done."""

    caught_by = LateWrites.test_a_write_that_lands_late_was_unknown_and_is_seen_by_the_next_read

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        try:
            return await self.twin.update(key, value, expected=expected)
        except Unavailable:
            raise Conflict(key, expected=expected) from None


class LateWritesExpectNothing(RecordSaboteur):
    """A write that was sent once is done whenever it arrives, whatever stands there then."""

    caught_by = LateWrites.test_a_late_write_takes_nothing_that_was_written_meanwhile

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        link: MemoryLink = self.twin.link
        if link.next_write != "withheld":
            return await self.twin.update(key, value, expected=expected)

        def whatever_stands() -> Record:
            live = self.bucket.live(key)
            return self.bucket.write(key, value, 0 if live is None else live.revision)

        return await link.write(self.twin.name, whatever_stands, landed=lambda _: False)


class TriesAgainOverWhateverStands(RecordSaboteur):
    """An update of which nothing was heard is sent again, over what stands by then."""

    caught_by = Histories.test_no_two_writes_are_done_over_one_revision_and_none_that_was_told_is_missing

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        try:
            return await self.twin.update(key, value, expected=expected)
        except Unavailable:
            live = self.bucket.live(key)
            return self.bucket.write(key, value, 0 if live is None else live.revision)


class UnheardIsDone(RecordSaboteur):
    """An update of which nothing was heard is told as done."""

    caught_by = Histories.test_through_changes_of_leader_too

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        try:
            return await self.twin.update(key, value, expected=expected)
        except Unavailable:
            return Record(key, value, Revision(expected + 1), self.bucket.time().earliest)


class RemovesAgainWhateverStands(RecordSaboteur):
    """A removal of which nothing was heard is sent again, for what stands by then."""

    caught_by = Histories.test_a_key_is_created_again_only_after_whoever_created_it_had_it_removed

    async def delete(self, key: str, *, expected: Revision) -> None:
        try:
            await self.twin.delete(key, expected=expected)
        except Unavailable:
            await asyncio.sleep(_LATER_S)
            live = self.bucket.live(key)
            self.bucket.remove(key, 0 if live is None else live.revision)


UNKNOWN_FAULTS: tuple[type[RecordSaboteur], ...] = (
    OutOfReachIsAbsent,
    AbsentCanBeRemovedUnasked,
    ListsNothingUnasked,
    BeginsAgainUnasked,
    OutOfReachTheTimeIsOurs,
    GivenUpIsForGood,
    OnceCutIsAlwaysCut,
    OneCutIsEverybodys,
    ToldAndNotKept,
    UnheardIsNotReadBack,
    UnheardRemovalsAreRefused,
    EqualBytesAreOnesOwn,
    HopesForTheBest,
    FearsTheWorst,
    LateWritesExpectNothing,
    TriesAgainOverWhateverStands,
    UnheardIsDone,
    RemovesAgainWhateverStands,
)
