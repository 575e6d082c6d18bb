"""Saboteurs of detached runs: writes of former holders that land, charges that are made twice, runs that are lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from msgspec.structs import replace

from crewlet.base.errors import Conflict, Fenced, Unavailable
from crewlet.coordination import RunStatus, SandboxRun, SandboxRuns
from crewlet.coordination.records.stored import put_stored
from crewlet.testing.contracts.slot_sandbox_runs import RunFencePromises, SandboxRunPromises

__all__ = ["RUN_FAULTS"]

Step = Callable[[SandboxRun], SandboxRun | None]
ANY_EPOCH = 1_000_000


class RunFault(SandboxRuns):
    """``caught_by`` is the promise that must find the saboteur out."""

    caught_by: ClassVar[Callable[..., Awaitable[None]]]

    async def put(self, run: SandboxRun) -> SandboxRun:
        """The run stands, whatever stood."""
        return (await put_stored(self._store, f"run.{run.handle}.{run.turn_id}", run)).record


class AnybodyChanges(RunFault):
    """No change is held against the owner's epoch."""

    caught_by = RunFencePromises.test_a_change_from_before_the_owners_tenure_is_refused

    async def change(self, handle: str, turn_id: str, step: Step, *, epoch: int) -> SandboxRun | None:
        return await super().change(handle, turn_id, step, epoch=ANY_EPOCH)


class AnybodyTakesOver(RunFault):
    """A run can be taken back."""

    caught_by = RunFencePromises.test_a_former_holder_cannot_take_a_run_back

    async def take_over(self, handle: str, turn_id: str, *, owner: str, epoch: int) -> SandboxRun | None:
        return await self.change(
            handle, turn_id, lambda run: replace(run, owner=owner, owner_epoch=epoch), epoch=ANY_EPOCH
        )


class AnybodyCharges(RunFault):
    """A former holder charges what its successor will charge."""

    caught_by = RunFencePromises.test_a_former_holder_cannot_mark_a_charge

    async def mark_charged(self, handle: str, turn_id: str, *, by: str, epoch: int) -> bool:
        return await super().mark_charged(handle, turn_id, by=by, epoch=ANY_EPOCH)


class AnybodySettles(RunFault):
    """A former holder settles its successor's run."""

    caught_by = RunFencePromises.test_a_former_holder_cannot_settle_a_run

    async def settle(self, handle: str, turn_id: str, *, epoch: int) -> SandboxRun | None:
        return await super().settle(handle, turn_id, epoch=ANY_EPOCH)


class AnybodyLaunches(RunFault):
    """A launch takes whatever stands under its turn for its own."""

    caught_by = RunFencePromises.test_a_former_holder_cannot_launch_over_its_successors_run

    async def open(self, run: SandboxRun) -> SandboxRun:
        try:
            return await super().open(run)
        except Fenced:
            return run


class ChecksAndThenSettles(RunFault):
    """What was checked is not what is removed."""

    caught_by = RunFencePromises.test_a_take_over_between_a_read_and_its_write_fences_the_write

    async def settle(self, handle: str, turn_id: str, *, epoch: int) -> SandboxRun | None:
        try:
            return await super().settle(handle, turn_id, epoch=epoch)
        except (Fenced, Unavailable):
            return await super().settle(handle, turn_id, epoch=ANY_EPOCH)


class EqualsAreFenced(RunFault):
    """Only a later epoch than the record's may change it."""

    caught_by = RunFencePromises.test_the_epoch_of_the_record_itself_may_change_it

    async def change(self, handle: str, turn_id: str, step: Step, *, epoch: int) -> SandboxRun | None:
        return await super().change(handle, turn_id, step, epoch=epoch - 1)


class TheConversationIsLost(RunFault):
    """Who takes a run over takes its box alone."""

    caught_by = SandboxRunPromises.test_whoever_owns_the_seat_next_finds_the_box_and_the_conversation

    async def take_over(self, handle: str, turn_id: str, *, owner: str, epoch: int) -> SandboxRun | None:
        def step(run: SandboxRun) -> SandboxRun:
            return replace(run, owner=owner, owner_epoch=epoch, conversation=None)

        return await self.change(handle, turn_id, step, epoch=epoch)


class LaunchesAnew(RunFault):
    """A launch that is told twice starts again."""

    caught_by = SandboxRunPromises.test_a_launch_told_twice_is_one_run

    async def open(self, run: SandboxRun) -> SandboxRun:
        return await self.put(run)


class TheLastLaunchCounts(RunFault):
    """Another launch takes the record, and the first box is forgotten."""

    caught_by = SandboxRunPromises.test_another_launch_of_the_turn_does_not_take_its_record

    async def open(self, run: SandboxRun) -> SandboxRun:
        try:
            return await super().open(run)
        except Conflict:
            return await self.put(run)


class ListsTheCompany(RunFault):
    """A seat is told of everybody's runs."""

    caught_by = SandboxRunPromises.test_the_runs_of_a_seat_are_listed_and_no_other_seats

    async def of_seat(self, handle: str) -> list[SandboxRun]:
        return await self.every()


class EverybodyResumes(RunFault):
    """What a step was asked of is not what it is written over."""

    caught_by = SandboxRunPromises.test_of_many_resumes_of_a_run_one_has_it

    async def change(self, handle: str, turn_id: str, step: Step, *, epoch: int) -> SandboxRun | None:
        run = await self.get(handle, turn_id)
        changed = None if run is None else step(run)
        return None if changed is None else await self.put(changed)


class ResumesToRunning(RunFault):
    """A run is given back as running, wherever it stood."""

    caught_by = SandboxRunPromises.test_a_resume_that_failed_gives_the_run_back_where_it_stood

    async def change(self, handle: str, turn_id: str, step: Step, *, epoch: int) -> SandboxRun | None:
        def stepped(run: SandboxRun) -> SandboxRun | None:
            changed = step(run)
            if changed is None or run.status is not RunStatus.RESUMED:
                return changed
            return replace(changed, status=RunStatus.RUNNING)

        return await super().change(handle, turn_id, stepped, epoch=epoch)


class EverybodyCharges(RunFault):
    """The mark is looked at, then put."""

    caught_by = SandboxRunPromises.test_one_of_many_charges_a_run

    async def mark_charged(self, handle: str, turn_id: str, *, by: str, epoch: int) -> bool:
        run = await self.get(handle, turn_id)
        if run is None or run.charged_by:
            return False
        await self.put(replace(run, charged_by=by))
        return True


class AMarkIsAnybodys(RunFault):
    """Who finds a mark does not charge, its own among them."""

    caught_by = SandboxRunPromises.test_who_marked_a_charge_and_never_heard_of_it_still_charges

    async def mark_charged(self, handle: str, turn_id: str, *, by: str, epoch: int) -> bool:
        run = await self.get(handle, turn_id)
        if run is not None and run.charged_by:
            return False
        return await super().mark_charged(handle, turn_id, by=by, epoch=epoch)


class SettledRunsStay(RunFault):
    """A settled run is told from others by its status."""

    caught_by = SandboxRunPromises.test_a_settled_run_is_met_by_nobody_again

    async def settle(self, handle: str, turn_id: str, *, epoch: int) -> SandboxRun | None:
        return await self.change(handle, turn_id, lambda run: replace(run, status=RunStatus.RESUMED), epoch=epoch)


class NewFieldsAreLost(RunFault):
    """A change writes what this build knows."""

    caught_by = SandboxRunPromises.test_what_a_newer_build_wrote_into_a_run_stays

    async def take_over(self, handle: str, turn_id: str, *, owner: str, epoch: int) -> SandboxRun | None:
        def step(run: SandboxRun) -> SandboxRun:
            return replace(run, owner=owner, owner_epoch=epoch, unknown={})

        return await self.change(handle, turn_id, step, epoch=epoch)


class TheUnknownIsGone(RunFault):
    """A run that cannot be read is settled."""

    caught_by = SandboxRunPromises.test_a_run_that_cannot_be_read_is_neither_gone_nor_over

    async def get(self, handle: str, turn_id: str) -> SandboxRun | None:
        try:
            return await super().get(handle, turn_id)
        except Unavailable:
            return None


RUN_FAULTS: tuple[type[RunFault], ...] = (
    AnybodyChanges,
    AnybodyTakesOver,
    AnybodyCharges,
    AnybodySettles,
    AnybodyLaunches,
    ChecksAndThenSettles,
    EqualsAreFenced,
    TheConversationIsLost,
    LaunchesAnew,
    TheLastLaunchCounts,
    ListsTheCompany,
    EverybodyResumes,
    ResumesToRunning,
    EverybodyCharges,
    AMarkIsAnybodys,
    SettledRunsStay,
    NewFieldsAreLost,
    TheUnknownIsGone,
)
