"""Saboteurs of the mailboxes' records: returned seats that are lost, marks that two sweeps have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import ClassVar

from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import (
    Mailboxes,
    SeatMailbox,
    Stored,
)
from crewlet.coordination.records.stored import put_stored
from crewlet.testing.contracts.slot_mailboxes import MailboxPromises, RetirementPromises

__all__ = ["MAILBOX_FAULTS"]


class MailboxFault(Mailboxes):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]

    async def put(self, mailbox: SeatMailbox) -> Stored[SeatMailbox]:
        """The record stands, whatever stood."""
        return await put_stored(self._store, f"seat.{mailbox.handle}", mailbox)


class ForgetsWhoCameBack(MailboxFault):
    """The record goes that a returned seat took over."""

    caught_by = RetirementPromises.test_a_retirement_that_was_taken_over_learns_of_it

    async def forget(self, mark: Stored[SeatMailbox]) -> bool:
        standing = await self.get(mark.record.handle)
        return True if standing is None else await super().forget(standing)


class ForgetsTwice(ForgetsWhoCameBack):
    """A repeat takes the record that a returned seat wrote meanwhile."""

    caught_by = RetirementPromises.test_forgetting_again_does_not_take_a_seat_that_came_back


class RegistersOverAMark(MailboxFault):
    """A seat that comes back does not wait for the retirement."""

    caught_by = RetirementPromises.test_a_seat_that_registers_after_the_mark_is_told_to_wait

    async def register(self, handle: str) -> SeatMailbox:
        seen = await super().register(handle)
        return await self.take_over(seen) if seen.is_retiring else seen


class RegistersBeside(MailboxFault):
    """Who registers is not told of the mark."""

    caught_by = RetirementPromises.test_a_mark_and_a_registration_at_once_never_both_hold

    async def register(self, handle: str) -> SeatMailbox:
        return replace(await super().register(handle), retiring_by="")


class MarksWhatCameBack(MailboxFault):
    """A mark is put over whatever stands."""

    caught_by = RetirementPromises.test_a_seat_that_registers_before_the_mark_is_not_retired

    async def mark(self, read: Stored[SeatMailbox], *, by: str) -> Stored[SeatMailbox] | None:
        return await self.put(replace(read.record, retiring_by=by, retiring_since=read.written_at))


class EverySweepMarks(MailboxFault):
    """Each of the sweeps that overlap has the mark."""

    caught_by = RetirementPromises.test_of_sweeps_that_overlap_one_wins_the_mark

    async def mark(self, read: Stored[SeatMailbox], *, by: str) -> Stored[SeatMailbox] | None:
        return await self.put(replace(read.record, retiring_by=by, retiring_since=read.written_at))


class MarksAtOnce(MailboxFault):
    """There is no grace."""

    caught_by = RetirementPromises.test_a_mailbox_is_marked_after_the_whole_grace_and_not_before

    async def mark(self, read: Stored[SeatMailbox], *, by: str) -> Stored[SeatMailbox] | None:
        long_ago = read.written_at - timedelta(seconds=limits.MAILBOX_GRACE_S + 1)
        record = replace(read.record, absent_since=long_ago)
        return await super().mark(Stored(read.key, record, read.revision, read.written_at), by=by)


class TakesAnyRetirementOver(MailboxFault):
    """Who waited for one retirement ends another."""

    caught_by = RetirementPromises.test_a_take_over_ends_the_retirement_that_it_waited_for_and_no_other

    async def take_over(self, seen: SeatMailbox) -> SeatMailbox:
        standing = await self.get(seen.handle)
        return await super().take_over(seen if standing is None else standing.record)


class TakesOverWhatIsGone(MailboxFault):
    """A take-over brings the retirement's record back."""

    caught_by = RetirementPromises.test_a_take_over_after_the_retirement_ended_registers_the_seat

    async def take_over(self, seen: SeatMailbox) -> SeatMailbox:
        return (await self.put(seen)).record


class AMarkIsForEver(MailboxFault):
    """What a dead sweep marked is never anybody's again."""

    caught_by = RetirementPromises.test_a_mark_that_a_dead_sweep_left_is_anothers_once_it_is_old

    async def mark(self, read: Stored[SeatMailbox], *, by: str) -> Stored[SeatMailbox] | None:
        return None if read.record.is_retiring else await super().mark(read, by=by)


class GivesUpForGood(MailboxFault):
    """A retirement that failed starts the grace anew."""

    caught_by = RetirementPromises.test_a_retirement_that_failed_is_given_up_and_begun_again

    async def unmark(self, mark: Stored[SeatMailbox]) -> Stored[SeatMailbox] | None:
        unmarked = await super().unmark(mark)
        return None if unmarked is None else await self.put(replace(unmarked.record, absent_since=None))


class AMarkUnheardIsLost(MailboxFault):
    """Who marked and never heard of it has no mark."""

    caught_by = RetirementPromises.test_a_sweep_that_never_heard_of_its_mark_has_it_all_the_same

    async def mark(self, read: Stored[SeatMailbox], *, by: str) -> Stored[SeatMailbox] | None:
        standing = await self.get(read.record.handle)
        if standing is None or standing.revision != read.revision:
            return None
        return await super().mark(read, by=by)


class ForgettingIsForOneNode(MailboxFault):
    """The record stays behind its retirement."""

    caught_by = RetirementPromises.test_a_record_that_is_forgotten_is_gone_for_every_node

    async def forget(self, mark: Stored[SeatMailbox]) -> bool:
        return True


class EveryNodeRegistersAnew(MailboxFault):
    """A registration replaces the one before."""

    caught_by = MailboxPromises.test_a_seat_that_every_node_registers_has_one_record

    async def register(self, handle: str) -> SeatMailbox:
        at = (await self._store.time()).earliest
        return (await self.put(SeatMailbox(handle=handle, registered_at=at))).record


class EveryBootWrites(MailboxFault):
    """Registering again is a write."""

    caught_by = MailboxPromises.test_registering_again_writes_nothing

    async def register(self, handle: str) -> SeatMailbox:
        standing = await super().register(handle)
        await self.put(replace(standing, retiring_by="nobody"))
        return (await self.put(standing)).record


class AbsenceStays(MailboxFault):
    """A seat that comes back is as absent as it was."""

    caught_by = MailboxPromises.test_a_seat_that_comes_back_is_present_and_its_grace_starts_anew

    async def register(self, handle: str) -> SeatMailbox:
        standing = await self.get(handle)
        return await super().register(handle) if standing is None else standing.record


class StampsWhatCameBack(MailboxFault):
    """A stamp is put over whatever stands."""

    caught_by = MailboxPromises.test_a_stamp_is_put_over_what_the_sweep_read_alone

    async def stamp_absent(self, read: Stored[SeatMailbox]) -> Stored[SeatMailbox] | None:
        standing = await self.get(read.record.handle)
        return None if standing is None else await super().stamp_absent(standing)


class EverySightCounts(MailboxFault):
    """Each sweep starts the grace anew."""

    caught_by = MailboxPromises.test_an_absence_is_dated_by_the_stores_clock_and_the_first_sight_counts

    async def stamp_absent(self, read: Stored[SeatMailbox]) -> Stored[SeatMailbox] | None:
        return await self.put(replace(read.record, absent_since=(await self._store.time()).latest))


class DatesByAnotherClock(MailboxFault):
    """An absence began when some other clock says."""

    caught_by = MailboxPromises.test_an_absence_is_dated_by_the_stores_clock_and_the_first_sight_counts

    async def stamp_absent(self, read: Stored[SeatMailbox]) -> Stored[SeatMailbox] | None:
        if read.record.absent_since is not None:
            return read
        return await self.put(replace(read.record, absent_since=read.written_at - timedelta(seconds=90)))


class DiscoversWhoIsThere(MailboxFault):
    """A seat that registered is found missing."""

    caught_by = MailboxPromises.test_a_seat_that_registers_before_its_mailbox_is_discovered_is_not_found_missing

    async def discover(self, handle: str) -> Stored[SeatMailbox] | None:
        at = (await self._store.time()).latest
        return await self.put(SeatMailbox(handle=handle, registered_at=at, absent_since=at))


class DiscoversWithoutADate(MailboxFault):
    """What is found missing is not known since when."""

    caught_by = MailboxPromises.test_a_mailbox_that_nobody_registered_is_found_missing

    async def discover(self, handle: str) -> Stored[SeatMailbox] | None:
        await self.register(handle)
        return await self.get(handle)


class NewMailboxFieldsAreLost(MailboxFault):
    """A registration writes what this build knows."""

    caught_by = MailboxPromises.test_what_a_newer_build_wrote_stays

    async def register(self, handle: str) -> SeatMailbox:
        standing = await super().register(handle)
        record = await self._store.get(f"seat.{handle}")
        assert record is not None
        await self._store.delete(record.key, expected=record.revision)
        return (await self.put(replace(standing, unknown={}))).record


class TheUnknownIsAbsent(MailboxFault):
    """What cannot be listed is not registered."""

    caught_by = MailboxPromises.test_unknown_is_never_absent

    async def every(self) -> list[Stored[SeatMailbox]]:
        try:
            return await super().every()
        except Unavailable:
            return []


MAILBOX_FAULTS: tuple[type[MailboxFault], ...] = (
    ForgetsWhoCameBack,
    ForgetsTwice,
    RegistersOverAMark,
    RegistersBeside,
    MarksWhatCameBack,
    EverySweepMarks,
    MarksAtOnce,
    TakesAnyRetirementOver,
    TakesOverWhatIsGone,
    AMarkIsForEver,
    GivesUpForGood,
    AMarkUnheardIsLost,
    ForgettingIsForOneNode,
    EveryNodeRegistersAnew,
    EveryBootWrites,
    AbsenceStays,
    StampsWhatCameBack,
    EverySightCounts,
    DatesByAnotherClock,
    DiscoversWhoIsThere,
    DiscoversWithoutADate,
    NewMailboxFieldsAreLost,
    TheUnknownIsAbsent,
)
