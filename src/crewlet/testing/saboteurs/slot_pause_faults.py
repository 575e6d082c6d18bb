"""Saboteurs of paused seats, and of a node's copy of these."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import ClassVar

from msgspec.structs import replace

from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.coordination import (
    PauseChange,
    PauseCopy,
    Paused,
    PauseEdge,
    RecordStore,
    SeatPause,
    SeatPauses,
    Watch,
)
from crewlet.coordination.records.stored import put_stored
from crewlet.testing.contracts.slot_pause_copy import PauseCopyPromises
from crewlet.testing.contracts.slot_seat_pauses import SeatPausePromises

__all__ = ["PAUSE_COPY_FAULTS", "PAUSE_FAULTS"]


class PauseFault(SeatPauses):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]

    async def put(self, pause: SeatPause) -> SeatPause:
        """The pause stands, whatever stood."""
        return (await put_stored(self._store, f"seat_pause.{pause.handle}", pause)).record


class TheLastPauseStands(PauseFault):
    """Each who asks replaces the one before."""

    caught_by = SeatPausePromises.test_a_second_pause_changes_nothing

    async def pause(self, asked: SeatPause) -> Paused:
        return Paused(await self.put(asked), PauseChange.PAUSED)


class NothingIsStoppedLater(PauseFault):
    """A pause stays as it was first asked for."""

    caught_by = SeatPausePromises.test_a_pause_comes_to_stop_what_runs_once_and_stays_its_first_askers

    async def pause(self, asked: SeatPause) -> Paused:
        standing = await self.get(asked.handle)
        return await super().pause(asked) if standing is None else Paused(standing, PauseChange.NONE)


class EveryAskIsAChange(PauseFault):
    """Each who asks at once is told that it paused the seat."""

    caught_by = SeatPausePromises.test_of_many_pauses_at_once_one_changed_something

    async def pause(self, asked: SeatPause) -> Paused:
        return replace_change(await super().pause(asked))


class APauseUnheardIsNoChange(PauseFault):
    """Who paused and never heard of it announces nothing."""

    caught_by = SeatPausePromises.test_who_paused_and_never_heard_of_it_is_told_that_it_did

    async def pause(self, asked: SeatPause) -> Paused:
        standing = await self.get(asked.handle)
        return await super().pause(asked) if standing is None else Paused(standing, PauseChange.NONE)


class NoReasonIsKept(PauseFault):
    """Why a seat is paused is not on record."""

    caught_by = SeatPausePromises.test_every_node_reads_who_paused_a_seat_and_why

    async def pause(self, asked: SeatPause) -> Paused:
        return await super().pause(replace(asked, reason=""))


class LiftsNothing(PauseFault):
    """A lifted pause stands."""

    caught_by = SeatPausePromises.test_who_lifts_a_pause_is_told_which_it_was

    async def lift(self, handle: str, *, set_before: datetime | None = None) -> SeatPause | None:
        return await self.get(handle)


class LiftsForGood(PauseFault):
    """A lifted pause leaves a record in the way of the next."""

    caught_by = SeatPausePromises.test_a_seat_that_was_resumed_can_be_paused_again

    async def lift(self, handle: str, *, set_before: datetime | None = None) -> SeatPause | None:
        standing = await self.get(handle)
        return None if standing is None else await self.put(replace(standing, reason="lifted"))


class NewPauseFieldsAreLost(PauseFault):
    """An amended pause has what this build knows."""

    caught_by = SeatPausePromises.test_what_a_newer_build_wrote_stays

    async def pause(self, asked: SeatPause) -> Paused:
        await self.lift(asked.handle)
        await super().pause(replace(asked, stop_running=False))
        return await super().pause(replace(asked, stop_running=True))


class TheUnknownIsNotPaused(PauseFault):
    """A pause that cannot be read is none."""

    caught_by = SeatPausePromises.test_a_pause_that_cannot_be_read_is_not_lifted

    async def get(self, handle: str) -> SeatPause | None:
        try:
            return await super().get(handle)
        except Unavailable:
            return None


def replace_change(came_to: Paused) -> Paused:
    """The same, told as a change."""
    return Paused(came_to.pause, PauseChange.PAUSED)


class PauseCopyFault(PauseCopy):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class TheUnaskedIsNotPaused(PauseCopyFault):
    """Before the first answer no seat is paused."""

    caught_by = PauseCopyPromises.test_until_the_store_answered_nothing_is_known_and_nobody_is_told_not_paused

    def paused(self, handle: str) -> SeatPause | None:
        return super().paused(handle) if self.known else None


class TheUnreadableIsNotPaused(PauseCopyFault):
    """A pause that cannot be read is none."""

    caught_by = PauseCopyPromises.test_a_pause_that_cannot_be_read_is_not_taken_for_none

    def paused(self, handle: str) -> SeatPause | None:
        return super().paused(handle) if self.known else None


class SkipsResumes(PauseCopyFault):
    """What is lifted stays paused."""

    caught_by = PauseCopyPromises.test_a_pause_and_its_end_are_followed_and_told

    def _replace(self, by_key: dict[str, SeatPause]) -> None:
        super()._replace({**(self._pauses or {}), **by_key})


class PausesPileUp(SkipsResumes):
    """What is lifted under another leader stays paused."""

    caught_by = PauseCopyPromises.test_a_change_of_the_buckets_leader_is_followed_through


class SkipsResumesOfAnOutage(PauseCopyFault):
    """Another answer is added to what was known."""

    caught_by = PauseCopyPromises.test_what_changed_while_nothing_was_followed_is_known_and_told_after_it

    async def _follow_one(self, watch: Watch) -> None:
        if self._pauses is None:
            await super()._follow_one(watch)
        else:
            self._note_followed()
            while True:
                await watch.next()

    def _note_followed(self) -> None:
        self._broken_at_s = None


class ForgetsInAnOutage(PauseCopyFault):
    """What is not followed is not paused."""

    caught_by = PauseCopyPromises.test_what_changed_while_nothing_was_followed_is_known_and_told_after_it

    def _note_broken(self) -> None:
        super()._note_broken()
        if self._pauses is not None:
            self._pauses = {}


class FollowsOnce(PauseCopyFault):
    """A watch that broke is the last one."""

    caught_by = PauseCopyPromises.test_what_was_told_is_not_told_again_by_another_answer

    async def _follow(self) -> None:
        async with self._store.watch("seat_pause.>") as watch:
            try:
                await self._follow_one(watch)
            except Unavailable:
                self._note_broken()


class TellsHalf(PauseCopyFault):
    """The first answer is not told."""

    caught_by = PauseCopyPromises.test_the_first_answer_holds_every_pause_that_stands_and_is_told

    async def _follow_one(self, watch: Watch) -> None:
        self._told = {pause.handle: pause for pause in await SeatPauses(self._store).every()}
        await super()._follow_one(watch)


class TellsWhoAlone(PauseCopyFault):
    """A pause that came to stop what runs is the pause it was."""

    caught_by = PauseCopyPromises.test_a_pause_that_comes_to_stop_what_runs_is_told_again

    async def _told_of(self, handle: str, pause: SeatPause | None) -> bool:
        if pause is not None and handle in self._told:
            return True
        return await super()._told_of(handle, pause)


class TellsOnce(PauseCopyFault):
    """What could not be applied is not told again."""

    caught_by = PauseCopyPromises.test_what_could_not_be_applied_is_told_again

    async def _told_of(self, handle: str, pause: SeatPause | None) -> bool:
        if not await super()._told_of(handle, pause) and pause is not None:
            self._told[handle] = pause
        return True


class TellsEverythingAgain(PauseCopyFault):
    """Each answer is told from the beginning."""

    caught_by = PauseCopyPromises.test_what_was_told_is_not_told_again_by_another_answer

    async def _follow_one(self, watch: Watch) -> None:
        self._told.clear()
        await super()._follow_one(watch)


class PollsToo(PauseCopyFault):
    """The store is listed beside what is watched."""

    caught_by = PauseCopyPromises.test_each_opening_is_one_watch_and_nothing_else_is_asked

    async def _follow_one(self, watch: Watch) -> None:
        await SeatPauses(self._store).every()
        await super()._follow_one(watch)


class LeavesItsTasks(PauseCopyFault):
    """A closed copy goes on."""

    caught_by = PauseCopyPromises.test_a_copy_that_is_closed_leaves_nothing_running

    def __init__(self, store: RecordStore, clock: Clock, on_edge: PauseEdge) -> None:
        super().__init__(store, clock, on_edge)
        self.forgotten = self._tasks

    async def close(self) -> None:
        """Nothing is closed."""


PAUSE_FAULTS: tuple[type[PauseFault], ...] = (
    TheLastPauseStands,
    NothingIsStoppedLater,
    EveryAskIsAChange,
    APauseUnheardIsNoChange,
    NoReasonIsKept,
    LiftsNothing,
    LiftsForGood,
    NewPauseFieldsAreLost,
    TheUnknownIsNotPaused,
)
PAUSE_COPY_FAULTS: tuple[type[PauseCopyFault], ...] = (
    TheUnaskedIsNotPaused,
    TheUnreadableIsNotPaused,
    SkipsResumes,
    PausesPileUp,
    SkipsResumesOfAnOutage,
    ForgetsInAnOutage,
    FollowsOnce,
    TellsHalf,
    TellsWhoAlone,
    TellsOnce,
    TellsEverythingAgain,
    PollsToo,
    LeavesItsTasks,
)
