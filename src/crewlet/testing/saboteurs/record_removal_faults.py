"""Saboteurs of removals and their markers: what is gone, what comes back, and what a sweep takes."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import Record, Revision
from crewlet.testing.contracts import SKEW_S, Markers, Removals
from crewlet.testing.saboteurs.record_saboteur import RecordSaboteur

__all__ = ["REMOVAL_FAULTS"]


class NothingIsRemoved(RecordSaboteur):
    """A removal is noted and not done."""

    caught_by = Removals.test_a_removed_record_is_absent

    async def delete(self, key: str, *, expected: Revision) -> None:
        await self.twin.last_revision()


class RemovesAnything(RecordSaboteur):
    """A removal does not look at what it expects."""

    caught_by = Removals.test_a_removal_takes_what_it_expects_alone

    async def delete(self, key: str, *, expected: Revision) -> None:
        live = self.bucket.live(key)
        await self.twin.delete(key, expected=live.revision if live else expected)


class AbsentCannotBeRemoved(RecordSaboteur):
    """Removing what is not there is refused."""

    caught_by = Removals.test_removing_what_is_absent_is_no_error

    async def delete(self, key: str, *, expected: Revision) -> None:
        if self.bucket.live(key) is None:
            raise Conflict(key, expected=expected, current=0)
        await self.twin.delete(key, expected=expected)


class _Remembers(RecordSaboteur):
    """Knows which keys were removed, and what stood there."""

    async def delete(self, key: str, *, expected: Revision) -> None:
        await self.twin.delete(key, expected=expected)
        self.shared.removed[key] = expected


class RemovedKeysAreTaken(_Remembers):
    """A key that was removed stays taken."""

    caught_by = Removals.test_a_removed_key_is_created_again_above_its_removal

    async def create(self, key: str, value: bytes) -> Record:
        if key in self.shared.removed:
            raise Conflict(key, expected=0, current=self.shared.removed[key])
        return await self.twin.create(key, value)


class EveryCreateOverAMarkerIsDone(_Remembers):
    """Who creates over a removal writes over whatever has come since."""

    caught_by = Removals.test_of_many_creates_over_a_removal_one_wins

    async def create(self, key: str, value: bytes) -> Record:
        try:
            return await self.twin.create(key, value)
        except Conflict:
            live = self.bucket.live(key)
            if live is None or key not in self.shared.removed:
                raise
            return await self.twin.update(key, value, expected=live.revision)


class UpdatesRevive(_Remembers):
    """An update of what was removed since brings it back."""

    caught_by = Removals.test_an_update_never_revives_what_was_removed

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        if self.bucket.live(key) is None and self.shared.removed.get(key) == expected:
            return await self.twin.create(key, value)
        return await self.twin.update(key, value, expected=expected)


class RevisionsComeBack(_Remembers):
    """A key that was created again answers to the revision that it had before."""

    caught_by = Removals.test_an_old_revision_does_not_come_back_with_its_key

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        live = self.bucket.live(key)
        if live is not None and self.shared.removed.get(key) == expected:
            expected = live.revision
        return await self.twin.update(key, value, expected=expected)


class LooksAndThenRemoves(RecordSaboteur):
    """A removal looks at what stands and, a moment later, removes what stands then."""

    caught_by = Removals.test_of_a_removal_and_an_update_of_one_revision_one_is_done

    async def delete(self, key: str, *, expected: Revision) -> None:
        live = await self.twin.get(key)
        if live is not None and live.revision != expected:
            raise Conflict(key, expected=expected, current=live.revision)
        for _ in range(4):
            await asyncio.sleep(0)
        stands = self.bucket.live(key)
        await self.twin.delete(key, expected=stands.revision if stands else expected)


class CountsSweepsNotMarkers(RecordSaboteur):
    """A sweep says that it took something."""

    caught_by = Markers.test_a_sweep_takes_the_markers_written_before_its_horizon_and_counts_them

    async def purge_markers(self, *, before: datetime) -> int:
        return int(await self.twin.purge_markers(before=before) > 0)


class SweepsAllMarkers(RecordSaboteur):
    """A sweep has no horizon."""

    caught_by = Markers.test_younger_markers_stay

    async def purge_markers(self, *, before: datetime) -> int:
        return await self.twin.purge_markers(before=before + timedelta(hours=1))


class SweepsByOurClock(RecordSaboteur):
    """A horizon is taken for a time of the sweeper's own clock."""

    caught_by = Markers.test_the_horizon_is_on_the_stores_clock

    async def purge_markers(self, *, before: datetime) -> int:
        return await self.twin.purge_markers(before=before + timedelta(seconds=SKEW_S))


class SweepsOldRecords(RecordSaboteur):
    """A sweep takes whatever is old."""

    caught_by = Markers.test_a_sweep_of_a_bucket_without_markers_takes_nothing

    async def purge_markers(self, *, before: datetime) -> int:
        swept = await self.twin.purge_markers(before=before)
        return swept + self.bucket.purge("a", self.bucket.newest())


class SweepsKeysOutright(_Remembers):
    """A sweep takes all that is held of a key that was removed once."""

    caught_by = Markers.test_a_key_that_was_created_again_survives_the_sweep

    async def purge_markers(self, *, before: datetime) -> int:
        swept = await self.twin.purge_markers(before=before)
        for key in self.shared.removed:
            live = self.bucket.live(key)
            swept += live is not None and self.bucket.purge(key, live.revision)
        return swept


class SweepsWhatCameSince(RecordSaboteur):
    """A sweep looks for markers and, a moment later, takes what is held of their keys."""

    caught_by = Markers.test_a_key_that_is_created_again_during_the_sweep_survives_it

    async def purge_markers(self, *, before: datetime) -> int:
        found = self.bucket.markers(before)
        for _ in range(4):
            await asyncio.sleep(0)
        for key, _ in found:
            live = self.bucket.live(key)
            if live is not None:
                self.bucket.purge(key, live.revision)
        return await self.twin.purge_markers(before=before)


class SweptKeysAreRevived(_Remembers):
    """Where no marker says that a record was removed, an update makes it again."""

    caught_by = Markers.test_every_answer_is_the_same_with_all_markers_swept

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        held = self.bucket.keys([key])
        if not held and key in self.shared.removed:
            return await self.twin.create(key, value)
        return await self.twin.update(key, value, expected=expected)


class CreatesOverASweepAreAllDone(RecordSaboteur):
    """Who meets a sweep while it creates tries again over whatever stands."""

    caught_by = Markers.test_a_create_beside_a_sweep_is_done_once

    async def create(self, key: str, value: bytes) -> Record:
        try:
            return await self.twin.create(key, value)
        except Conflict:
            live = self.bucket.live(key)
            if live is None or not self.shared.count:
                raise
            return await self.twin.update(key, value, expected=live.revision)

    async def purge_markers(self, *, before: datetime) -> int:
        self.shared.count += 1
        return await self.twin.purge_markers(before=before)


class SweepsThatFailFindNothing(RecordSaboteur):
    """A sweep out of reach took nothing."""

    caught_by = Markers.test_a_sweep_that_is_cut_off_is_unavailable

    async def purge_markers(self, *, before: datetime) -> int:
        try:
            return await self.twin.purge_markers(before=before)
        except Unavailable:
            return 0


REMOVAL_FAULTS: tuple[type[RecordSaboteur], ...] = (
    NothingIsRemoved,
    RemovesAnything,
    AbsentCannotBeRemoved,
    RemovedKeysAreTaken,
    EveryCreateOverAMarkerIsDone,
    UpdatesRevive,
    RevisionsComeBack,
    LooksAndThenRemoves,
    CountsSweepsNotMarkers,
    SweepsAllMarkers,
    SweepsByOurClock,
    SweepsOldRecords,
    SweepsKeysOutright,
    SweepsWhatCameSince,
    SweptKeysAreRevived,
    CreatesOverASweepAreAllDone,
    SweepsThatFailFindNothing,
)
