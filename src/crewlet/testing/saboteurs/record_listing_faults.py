"""Saboteurs of listings: what is left out, what is too much, and what is old."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from crewlet.base.errors import Unavailable
from crewlet.coordination import Record, Revision
from crewlet.testing.contracts import Listings, ListingsUnderChange
from crewlet.testing.saboteurs.record_saboteur import RecordSaboteur

__all__ = ["LISTING_FAULTS"]


class NamesAlone(RecordSaboteur):
    """A listing has keys and no values."""

    caught_by = Listings.test_a_listing_holds_every_record_of_its_class_as_a_read_would_answer

    async def list(self, pattern: str) -> list[Record]:
        return [replace(record, value=b"") for record in await self.twin.list(pattern)]


class NothingIsUnknown(RecordSaboteur):
    """A class without records cannot be told from one that was not read."""

    caught_by = Listings.test_a_class_without_records_is_empty

    async def list(self, pattern: str) -> list[Record]:
        found = await self.twin.list(pattern)
        if not found:
            raise Unavailable("nothing was read")
        return found


class ClassesAreBeginnings(RecordSaboteur):
    """A class takes in every class that begins like it."""

    caught_by = Listings.test_one_class_is_listed_without_the_others

    async def create(self, key: str, value: bytes) -> Record:
        created = await self.twin.create(key, value)
        self.shared.seen[key] = created
        return created

    async def list(self, pattern: str) -> list[Record]:
        beginning = pattern.removesuffix(".>")
        more = [record for key, record in self.shared.seen.items() if key.startswith(beginning)]
        return [*await self.twin.list(pattern), *more]


class StarsAreManyTokens(RecordSaboteur):
    """A star at the end stands for any number of tokens."""

    caught_by = Listings.test_a_pattern_lists_what_it_covers_and_no_more

    async def list(self, pattern: str) -> list[Record]:
        return await self.twin.list(pattern.removesuffix(".*") + ".>" if pattern.endswith(".*") else pattern)


class NoClassIsEmpty(RecordSaboteur):
    """What names no class has no records."""

    caught_by = Listings.test_what_names_no_class_is_refused

    async def list(self, pattern: str) -> list[Record]:
        try:
            return await self.twin.list(pattern)
        except ValueError:
            return []


class MarkersAreListed(RecordSaboteur):
    """A removal marker is a record without bytes."""

    caught_by = Listings.test_what_was_removed_is_not_listed

    async def list(self, pattern: str) -> list[Record]:
        markers = self.bucket.markers(self.bucket.time().latest)
        shown = [Record(key, b"", revision, self.bucket.time().earliest) for key, revision in markers]
        return [*await self.twin.list(pattern), *shown]


class AMarkerIsTheAnswer(RecordSaboteur):
    """Once its pass met a key's removal marker, a listing leaves the key out."""

    caught_by = Listings.test_what_was_removed_and_created_again_is_listed_once_as_it_is_now

    async def delete(self, key: str, *, expected: Revision) -> None:
        await self.twin.delete(key, expected=expected)
        self.shared.removed[key] = expected

    async def list(self, pattern: str) -> list[Record]:
        return [record for record in await self.twin.list(pattern) if record.key not in self.shared.removed]


class TheAgedAreListed(RecordSaboteur):
    """What was written and not removed is listed, however old."""

    caught_by = Listings.test_what_grew_too_old_is_not_listed

    async def create(self, key: str, value: bytes) -> Record:
        created = await self.twin.create(key, value)
        self.shared.seen[key] = created
        return created

    async def list(self, pattern: str) -> list[Record]:
        await self.twin.list(pattern)
        return [*self.shared.seen.values()]


class OnePageIsAll(RecordSaboteur):
    """A listing ends with its first thousand."""

    caught_by = Listings.test_a_listing_of_many_is_whole

    async def list(self, pattern: str) -> list[Record]:
        return (await self.twin.list(pattern))[:1000]


class ListingsShareABuffer(RecordSaboteur):
    """What a client reads goes where all its listings look."""

    caught_by = Listings.test_many_listings_of_one_client_at_once_are_each_whole

    async def list(self, pattern: str) -> list[Record]:
        self.shared.listed["buffer"] = []
        found = await self.twin.list(pattern)
        self.shared.listed["buffer"] += found
        await self.twin.last_revision()
        return self.shared.listed["buffer"]


class HalfAnAnswerIsHandedOut(RecordSaboteur):
    """A listing that breaks off hands out what it had read."""

    caught_by = Listings.test_a_listing_that_is_cut_off_on_the_way_hands_out_nothing

    async def list(self, pattern: str) -> list[Record]:
        found: list[Record] = []
        keys = self.bucket.keys([pattern])
        try:
            for key in keys:
                found += await self.twin.list(key)
        except Unavailable:
            if not found:
                raise
        return found


class ListsAMomentLate(RecordSaboteur):
    """A listing is what a member holds that is one listing behind."""

    caught_by = Listings.test_a_listing_sees_what_was_written_before_it_began

    async def list(self, pattern: str) -> list[Record]:
        found = await self.twin.list(pattern)
        before = self.shared.listed.get(pattern, found)
        self.shared.listed[pattern] = found
        return before


class TheRewrittenAreLost(RecordSaboteur):
    """What is rewritten behind the pass's back before the pass comes to it is not delivered."""

    caught_by = ListingsUnderChange.test_a_record_that_is_rewritten_all_the_time_is_in_every_listing_once

    async def list(self, pattern: str) -> list[Record]:
        before = {record.key: record.revision for record in await self.twin.list(pattern)}
        return [record for record in await self.twin.list(pattern) if before.get(record.key) == record.revision]


class FirstSightIsKept(RecordSaboteur):
    """A listing keeps what its client saw first of a key."""

    caught_by = ListingsUnderChange.test_a_listing_is_never_older_than_what_was_written_before_it

    async def list(self, pattern: str) -> list[Record]:
        return [self.shared.seen.setdefault(record.key, record) for record in await self.twin.list(pattern)]


class RemovalsShiftNeighbours(RecordSaboteur):
    """A key that goes while a listing runs takes its neighbour's place on a page."""

    caught_by = ListingsUnderChange.test_keys_that_come_and_go_hide_none_that_stays

    async def list(self, pattern: str) -> list[Record]:
        names = {record.key for record in await self.twin.list(pattern)}
        for _ in range(5):
            await asyncio.sleep(0)
        found = await self.twin.list(pattern)
        return found if names == {record.key for record in found} else found[1:]


class SomeAnswersAreShort(RecordSaboteur):
    """Now and then a member answers that is behind."""

    caught_by = ListingsUnderChange.test_a_change_of_leader_makes_no_listing_shorter

    async def list(self, pattern: str) -> list[Record]:
        self.shared.count += 1
        found = await self.twin.list(pattern)
        return found[1:] if self.shared.count % 7 == 0 else found


LISTING_FAULTS: tuple[type[RecordSaboteur], ...] = (
    NamesAlone,
    NothingIsUnknown,
    ClassesAreBeginnings,
    StarsAreManyTokens,
    NoClassIsEmpty,
    MarkersAreListed,
    AMarkerIsTheAnswer,
    TheAgedAreListed,
    OnePageIsAll,
    ListingsShareABuffer,
    HalfAnAnswerIsHandedOut,
    ListsAMomentLate,
    TheRewrittenAreLost,
    FirstSightIsKept,
    RemovalsShiftNeighbours,
    SomeAnswersAreShort,
)
