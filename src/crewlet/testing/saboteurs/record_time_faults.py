"""Saboteurs of time: how long a record lives, and by whose clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from crewlet.base.errors import Conflict
from crewlet.coordination import Record, Revision, StoreTime
from crewlet.testing.contracts import SKEW_S, Ages, StoreTimes
from crewlet.testing.saboteurs.record_saboteur import RecordSaboteur

__all__ = ["TIME_FAULTS"]

_SKEW = timedelta(seconds=SKEW_S)


class NothingAges(RecordSaboteur):
    """What was read once is there for good."""

    caught_by = Ages.test_a_record_is_absent_once_its_age_has_passed_and_its_key_is_free

    async def get(self, key: str) -> Record | None:
        found = await self.twin.get(key) or self.shared.seen.get(key)
        if found is not None:
            self.shared.seen[key] = found
        return found


class AgesCountFromTheFirstWrite(RecordSaboteur):
    """An update does not start a record's age again."""

    caught_by = Ages.test_an_update_starts_the_age_again

    async def create(self, key: str, value: bytes) -> Record:
        created = await self.twin.create(key, value)
        self.shared.seen[key] = created
        return created

    async def get(self, key: str) -> Record | None:
        first = self.shared.seen[key]
        old = timedelta(seconds=self.bucket.slot.age_s or 0)
        return None if self.bucket.time().latest - first.written_at > old else await self.twin.get(key)


class ReadsKeepAlive(RecordSaboteur):
    """A record lives for as long as somebody reads it."""

    caught_by = Ages.test_a_read_does_not_start_the_age_again

    async def get(self, key: str) -> Record | None:
        found = await self.twin.get(key)
        return found and await self.twin.update(key, found.value, expected=found.revision)


class AllGoTogether(RecordSaboteur):
    """When a record's age has passed the whole bucket is empty."""

    caught_by = Ages.test_each_record_has_an_age_of_its_own

    async def create(self, key: str, value: bytes) -> Record:
        created = await self.twin.create(key, value)
        self.shared.seen[key] = created
        return created

    async def get(self, key: str) -> Record | None:
        aged = any(self.bucket.live(each) is None for each in self.shared.seen)
        return None if aged else await self.twin.get(key)


class UpdatesReviveTheAged(RecordSaboteur):
    """Where a record has gone by itself an update makes it again."""

    caught_by = Ages.test_what_grew_too_old_is_not_updated

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        try:
            return await self.twin.update(key, value, expected=expected)
        except Conflict as conflict:
            if conflict.current:
                raise
            return await self.twin.create(key, value)


class EverythingAges(RecordSaboteur):
    """A bucket without an age has one."""

    caught_by = Ages.test_what_has_no_age_stays

    async def get(self, key: str) -> Record | None:
        found = await self.twin.get(key)
        old = timedelta(seconds=1)
        return None if found is None or self.bucket.time().latest - found.written_at > old else found


class AgesAreEachClientsOwn(RecordSaboteur):
    """A client lives by the age that it would have made the bucket with."""

    caught_by = Ages.test_the_age_in_force_is_the_first_clients_whoever_asks

    @property
    def age_s(self) -> float:
        return 3600.0


class WritesAreDatedByUs(RecordSaboteur):
    """A record's date is the writer's."""

    caught_by = StoreTimes.test_a_write_is_dated_by_the_stores_clock_and_not_by_ours

    async def create(self, key: str, value: bytes) -> Record:
        created = await self.twin.create(key, value)
        return replace(created, written_at=created.written_at - _SKEW)


class FirstDatesAreKept(RecordSaboteur):
    """A record is dated once, when it is created."""

    caught_by = StoreTimes.test_an_update_has_a_date_of_its_own

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        before = self.bucket.live(key)
        updated = await self.twin.update(key, value, expected=expected)
        return updated if before is None else replace(updated, written_at=before.written_at)


class OurTimeIsTheStores(RecordSaboteur):
    """What time it is at the store is read at home."""

    caught_by = StoreTimes.test_the_bounds_hold_the_stores_time_and_are_narrow

    async def time(self) -> StoreTime:
        told = await self.twin.time()
        return StoreTime(told.earliest - _SKEW, told.latest - _SKEW)


class BoundsAreTooNarrow(RecordSaboteur):
    """A clock that is read over a link is taken at its word, and is fast."""

    caught_by = StoreTimes.test_a_write_between_two_looks_at_the_clock_is_dated_between_them

    async def time(self) -> StoreTime:
        told = await self.twin.time()
        fast = timedelta(seconds=0.2)
        return StoreTime(told.latest + fast, told.latest + fast)


class TimeStandsStill(RecordSaboteur):
    """The store's time is asked once."""

    caught_by = StoreTimes.test_a_deadline_is_judged_past_by_the_stores_clock_alone

    told: StoreTime | None = None

    async def time(self) -> StoreTime:
        self.told = self.told or await self.twin.time()
        return self.told


TIME_FAULTS: tuple[type[RecordSaboteur], ...] = (
    NothingAges,
    AgesCountFromTheFirstWrite,
    ReadsKeepAlive,
    AllGoTogether,
    UpdatesReviveTheAged,
    EverythingAges,
    AgesAreEachClientsOwn,
    WritesAreDatedByUs,
    FirstDatesAreKept,
    OurTimeIsTheStores,
    BoundsAreTooNarrow,
    TimeStandsStill,
)
