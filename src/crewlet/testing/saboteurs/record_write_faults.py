"""Saboteurs of single records: what a read answers, which write is done, and under which revision."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import Record, Revision
from crewlet.testing.contracts import RecordWrites, Revisions
from crewlet.testing.saboteurs.record_saboteur import RecordSaboteur

__all__ = ["WRITE_FAULTS"]


class ZerosAreLost(RecordSaboteur):
    """A value is text."""

    caught_by = RecordWrites.test_a_record_is_read_by_another_client_as_it_was_written

    async def create(self, key: str, value: bytes) -> Record:
        return await self.twin.create(key, value.strip(b"\x00"))


class AbsentIsEmpty(RecordSaboteur):
    """What was never written reads as nothing in particular."""

    caught_by = RecordWrites.test_a_key_never_written_is_absent

    async def get(self, key: str) -> Record | None:
        return await self.twin.get(key) or Record(key, b"", Revision(0), self.bucket.time().earliest)


class EmptyIsAbsent(RecordSaboteur):
    """A record without bytes is taken for a removal."""

    caught_by = RecordWrites.test_any_bytes_are_a_value_none_at_all_too

    async def get(self, key: str) -> Record | None:
        found = await self.twin.get(key)
        return found if found is None or found.value else None


class CreatesOverTheLiving(RecordSaboteur):
    """A create replaces what stands."""

    caught_by = RecordWrites.test_a_create_is_exclusive_and_names_what_stands

    async def create(self, key: str, value: bytes) -> Record:
        live = self.bucket.live(key)
        return await (self.twin.update(key, value, expected=live.revision) if live else self.twin.create(key, value))


class EqualBytesAreCreated(RecordSaboteur):
    """Who finds the bytes that it wanted to create takes them for its own."""

    caught_by = RecordWrites.test_of_many_creates_one_wins_even_with_equal_bytes

    async def create(self, key: str, value: bytes) -> Record:
        try:
            return await self.twin.create(key, value)
        except Conflict:
            live = self.bucket.live(key)
            if live is None or live.value != value:
                raise
            return replace(live, revision=Revision(live.revision))


class UpdatesOverAnything(RecordSaboteur):
    """An update does not look at what it expects."""

    caught_by = RecordWrites.test_an_update_replaces_what_it_expects_alone

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        live = self.bucket.live(key)
        return await self.twin.update(key, value, expected=live.revision if live else expected)


class EqualBytesAreUpdated(RecordSaboteur):
    """Who finds the bytes that it wanted to write takes them for its own."""

    caught_by = RecordWrites.test_of_many_updates_one_wins_even_with_equal_bytes

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        try:
            return await self.twin.update(key, value, expected=expected)
        except Conflict:
            live = self.bucket.live(key)
            if live is None or live.value != value:
                raise
            return live


class UpdatesCreate(RecordSaboteur):
    """An update of what is not there makes it."""

    caught_by = RecordWrites.test_an_update_of_an_absent_key_conflicts

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        if self.bucket.live(key) is None:
            return await self.twin.create(key, value)
        return await self.twin.update(key, value, expected=expected)


class SiblingsAreOne(RecordSaboteur):
    """A write goes to every record beside its own, too."""

    caught_by = RecordWrites.test_keys_do_not_touch_each_other

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        updated = await self.twin.update(key, value, expected=expected)
        for sibling in self.bucket.keys([f"{key.rpartition('.')[0]}.*"]):
            live = self.bucket.live(sibling)
            if live is not None and sibling != key:
                self.bucket.write(sibling, value, live.revision)
        return updated


class OvertakenIsUnknown(RecordSaboteur):
    """A write that was acknowledged is looked up, and not known once somebody wrote over it."""

    caught_by = RecordWrites.test_no_write_of_many_clients_over_one_record_is_lost_or_unknown

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        updated = await self.twin.update(key, value, expected=expected)
        for _ in range(3):
            await asyncio.sleep(0)
        if await self.twin.get(key) != updated:
            raise Unavailable(f"{key!r}: whether it was written is not known")
        return updated


class KeysHaveNoCase(RecordSaboteur):
    """Keys that differ in case alone are one."""

    caught_by = RecordWrites.test_a_key_may_hold_whatever_the_alphabet_of_keys_has

    async def create(self, key: str, value: bytes) -> Record:
        return await self.twin.create(key.lower(), value)


class NoKeyIsAbsent(RecordSaboteur):
    """What can be no key is looked for in vain."""

    caught_by = RecordWrites.test_what_can_be_no_key_is_refused_by_every_verb

    async def get(self, key: str) -> Record | None:
        try:
            return await self.twin.get(key)
        except ValueError:
            return None


class CreatesAreNumberOne(RecordSaboteur):
    """Each key counts its own revisions."""

    caught_by = Revisions.test_each_write_has_a_greater_revision_than_all_before_it

    async def create(self, key: str, value: bytes) -> Record:
        return replace(await self.twin.create(key, value), revision=Revision(1))


class EmptyBucketsHaveARevision(RecordSaboteur):
    """A bucket begins with its first revision taken."""

    caught_by = Revisions.test_of_an_empty_bucket_there_is_no_last_revision

    async def last_revision(self) -> Revision:
        return max(Revision(1), await self.twin.last_revision())


class OwnWritesAreTheLast(RecordSaboteur):
    """The last revision is that of this client's own last write."""

    caught_by = Revisions.test_the_last_revision_is_the_newest_writes_whoever_wrote

    last = Revision(0)

    async def create(self, key: str, value: bytes) -> Record:
        created = await self.twin.create(key, value)
        self.last = created.revision
        return created

    async def last_revision(self) -> Revision:
        return self.last


class RemovalsAreNoWrites(RecordSaboteur):
    """The last revision is that of the last record written."""

    caught_by = Revisions.test_a_removal_is_a_write_with_a_revision

    async def last_revision(self) -> Revision:
        return Revision(max(0, await self.twin.last_revision() - len(self.shared.removed)))

    async def delete(self, key: str, *, expected: Revision) -> None:
        await self.twin.delete(key, expected=expected)
        self.shared.removed[key] = expected


class RefusalsAreCounted(RecordSaboteur):
    """A write that was refused leaves a trace in the bucket."""

    caught_by = Revisions.test_what_was_refused_has_no_revision

    async def create(self, key: str, value: bytes) -> Record:
        try:
            return await self.twin.create(key, value)
        except Conflict:
            self.shared.count += 1
            self.bucket.write(f"refused.r{self.shared.count}", b"", 0)
            raise


WRITE_FAULTS: tuple[type[RecordSaboteur], ...] = (
    ZerosAreLost,
    AbsentIsEmpty,
    EmptyIsAbsent,
    CreatesOverTheLiving,
    EqualBytesAreCreated,
    UpdatesOverAnything,
    EqualBytesAreUpdated,
    UpdatesCreate,
    SiblingsAreOne,
    OvertakenIsUnknown,
    KeysHaveNoCase,
    NoKeyIsAbsent,
    CreatesAreNumberOne,
    EmptyBucketsHaveARevision,
    OwnWritesAreTheLast,
    RemovalsAreNoWrites,
    RefusalsAreCounted,
)
