"""Saboteurs of what happens once: dispatches, batches and instants of old work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import ClassVar

from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination import Custodies, Custody, Fire, Fires, Rebase, Rebases, WorkInstant
from crewlet.coordination.records.codec import encode_record
from crewlet.coordination.records.rebases import is_past_horizon
from crewlet.coordination.records.stored import first_stored, put_stored, read_stored
from crewlet.testing.contracts.slot_custody import CustodyPromises
from crewlet.testing.contracts.slot_fires import FirePromises
from crewlet.testing.contracts.slot_rebases import RebasePromises

__all__ = ["CUSTODY_FAULTS", "FIRE_FAULTS", "REBASE_FAULTS"]


class FireFault(Fires):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class EveryAttemptWins(FireFault):
    """A claim is written and not looked at."""

    caught_by = FirePromises.test_a_successor_finds_the_claim

    async def claim(self, owner: str, schedule: str, instant: str, target: str, *, claimant: str) -> bool:
        await super().claim(owner, schedule, instant, target, claimant=claimant)
        return True


class LooksThenWins(FireFault):
    """What is looked at and what is written is not compared."""

    caught_by = FirePromises.test_of_many_attempts_one_wins

    async def claim(self, owner: str, schedule: str, instant: str, target: str, *, claimant: str) -> bool:
        standing = await self.standing(owner, schedule, instant, target)
        await super().claim(owner, schedule, instant, target, claimant=claimant)
        return standing is None


class TheProcessWins(FireFault):
    """A process wins its own fire again."""

    caught_by = FirePromises.test_another_attempt_of_the_same_process_has_lost

    async def claim(self, owner: str, schedule: str, instant: str, target: str, *, claimant: str) -> bool:
        return await super().claim(owner, schedule, instant, target, claimant="the process")


class AnyTarget(FireFault):
    """One dispatch is enough for all its targets."""

    caught_by = FirePromises.test_each_part_tells_dispatches_apart

    async def claim(self, owner: str, schedule: str, instant: str, target: str, *, claimant: str) -> bool:
        return await super().claim(owner, schedule, instant, "any", claimant=claimant)


class WinsByWritingAlone(FireFault):
    """Whose write a claim is does not matter to who did not hear of it."""

    caught_by = FirePromises.test_who_lost_the_answer_learns_that_it_has_won

    async def claim(self, owner: str, schedule: str, instant: str, target: str, *, claimant: str) -> bool:
        fire = Fire(
            owner=owner,
            schedule=schedule,
            instant=instant,
            target=target,
            claimant=claimant,
            claimed_at=self._clock.now(),
        )
        try:
            await self._store.create("fire.one", encode_record(fire))
        except Conflict:
            return False
        return True


class TheUnknownIsLost(FireFault):
    """What cannot be asked was claimed by somebody."""

    caught_by = FirePromises.test_an_unreachable_store_is_neither_won_nor_lost

    async def claim(self, owner: str, schedule: str, instant: str, target: str, *, claimant: str) -> bool:
        try:
            return await super().claim(owner, schedule, instant, target, claimant=claimant)
        except Unavailable:
            return False


class CustodyFault(Custodies):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class TheLastWriterKeeps(CustodyFault):
    """A batch changes hands with each claim."""

    caught_by = CustodyPromises.test_of_two_writers_of_a_batch_the_first_claimant_keeps_it

    async def claim(self, batch_id: str, *, keeper: str) -> Custody:
        custody = Custody(batch_id=batch_id, keeper=keeper, claimed_at=self._clock.now())
        return (await put_stored(self._store, f"batch.{batch_id}", custody)).record


class EverybodyKeeps(CustodyFault):
    """Two that ask at once both keep the batch."""

    caught_by = CustodyPromises.test_of_many_claimants_one_keeps_it_and_all_know_which

    async def claim(self, batch_id: str, *, keeper: str) -> Custody:
        standing = await self.standing(batch_id)
        mine = Custody(batch_id=batch_id, keeper=keeper, claimed_at=self._clock.now())
        await first_stored(self._store, f"batch.{batch_id}", mine)
        return standing or mine


class TheUnknownIsKept(CustodyFault):
    """A batch whose keeper cannot be asked for is one's own."""

    caught_by = CustodyPromises.test_an_unreachable_store_makes_a_batch_nobodys_and_not_ones_own

    async def claim(self, batch_id: str, *, keeper: str) -> Custody:
        try:
            return await super().claim(batch_id, keeper=keeper)
        except Unavailable:
            return Custody(batch_id=batch_id, keeper=keeper, claimed_at=self._clock.now())


class OneBatchForAll(CustodyFault):
    """Whoever keeps one batch keeps them all."""

    caught_by = CustodyPromises.test_what_nobody_claimed_is_nobodys

    async def standing(self, batch_id: str) -> Custody | None:
        return await super().standing("b1")


class RebaseFault(Rebases):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]


class MintsEachTime(RebaseFault):
    """Each attempt writes at its own instant."""

    caught_by = RebasePromises.test_old_work_is_rebased_once_and_every_later_attempt_inherits

    async def instant(self, work_key: str, *, began_at: datetime) -> WorkInstant:
        now = self._clock.now()
        return WorkInstant(now if is_past_horizon(began_at, now=now) else began_at, is_rebased=True)


class MintsAtOnce(RebaseFault):
    """What is read and what is written is not compared."""

    caught_by = RebasePromises.test_attempts_at_once_share_one_instant

    async def instant(self, work_key: str, *, began_at: datetime) -> WorkInstant:
        standing = await read_stored(self._store, Rebase, f"work.{work_key}")
        mine = Rebase(work_key=work_key, instant=self._clock.now())
        await first_stored(self._store, f"work.{work_key}", mine)
        return WorkInstant((mine if standing is None else standing.record).instant, is_rebased=True)


class InheritsForEver(RebaseFault):
    """An instant is inherited as long as it is on record."""

    caught_by = RebasePromises.test_an_instant_past_the_horizon_is_minted_anew

    async def instant(self, work_key: str, *, began_at: datetime) -> WorkInstant:
        mine = Rebase(work_key=work_key, instant=self._clock.now())
        stands = await first_stored(self._store, f"work.{work_key}", mine)
        return WorkInstant(stands.record.instant, is_rebased=True)


class RebasesYoungWork(RebaseFault):
    """All work has its instant on record."""

    caught_by = RebasePromises.test_young_work_keeps_its_beginning_and_leaves_no_record

    async def instant(self, work_key: str, *, began_at: datetime) -> WorkInstant:
        instant = await super().instant(work_key, began_at=began_at)
        await first_stored(self._store, f"work.{work_key}", Rebase(work_key=work_key, instant=instant.at))
        return instant


class TrustsItsOwnClock(RebaseFault):
    """What is not past the horizon by this clock was past it by none."""

    caught_by = RebasePromises.test_a_node_whose_clock_is_behind_inherits_all_the_same

    async def instant(self, work_key: str, *, began_at: datetime) -> WorkInstant:
        if not is_past_horizon(began_at, now=self._clock.now()):
            return WorkInstant(began_at, is_rebased=False)
        return await super().instant(work_key, began_at=began_at)


class RunsOnTheUnknown(RebaseFault):
    """An instant that cannot be asked for is this one."""

    caught_by = RebasePromises.test_old_work_waits_for_an_unreachable_store_and_young_work_does_not

    async def instant(self, work_key: str, *, began_at: datetime) -> WorkInstant:
        try:
            return await super().instant(work_key, began_at=began_at)
        except Unavailable:
            return WorkInstant(self._clock.now(), is_rebased=True)


FIRE_FAULTS: tuple[type[FireFault], ...] = (
    EveryAttemptWins,
    LooksThenWins,
    TheProcessWins,
    AnyTarget,
    WinsByWritingAlone,
    TheUnknownIsLost,
)
CUSTODY_FAULTS: tuple[type[CustodyFault], ...] = (
    TheLastWriterKeeps,
    EverybodyKeeps,
    TheUnknownIsKept,
    OneBatchForAll,
)
REBASE_FAULTS: tuple[type[RebaseFault], ...] = (
    MintsEachTime,
    MintsAtOnce,
    InheritsForEver,
    RebasesYoungWork,
    TrustsItsOwnClock,
    RunsOnTheUnknown,
)
