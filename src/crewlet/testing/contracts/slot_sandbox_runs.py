"""Promises about detached runs: who may change one, who charges it, and that it goes when it is settled."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest
from msgspec.structs import replace

from crewlet.base.errors import Conflict, Fenced, Unavailable
from crewlet.coordination import (
    SANDBOX_RUNS,
    RunStatus,
    SandboxRun,
    SandboxRuns,
    run_given_back,
    run_resumed,
    run_suspended,
)
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.record_harness import RecordHarness
from crewlet.testing.contracts.slot_outside import AT, add_fields, damage, fields, has_no_answer
from crewlet.testing.contracts.slot_unheard import goes_unheard

__all__ = ["RunFencePromises", "SandboxRunPromises"]

LAUNCHED = SandboxRun(
    turn_id="t1",
    launch_id="l1",
    handle="cto",
    status=RunStatus.LAUNCHING,
    owner="node-0:a",
    owner_epoch=6,
    cell="container",
    started_at=AT,
    updated_at=AT,
    box="box-1",
)
KEY = "run.cto.t1"


class SandboxRunPromises(Contract):
    """What is true of a run from its launch until it is settled."""

    kind: ClassVar[type[SandboxRuns]] = SandboxRuns

    @pytest.mark.spec("C-077")
    async def test_whoever_owns_the_seat_next_finds_the_box_and_the_conversation(self, records: RecordHarness) -> None:
        launcher = self.kind(await records.client(SANDBOX_RUNS))
        successor = self.kind(await records.client(SANDBOX_RUNS))
        conversation = {"version": 1, "messages": [{"role": "user", "signed": "x"}]}
        await launcher.open(LAUNCHED)
        await launcher.change("cto", "t1", lambda run: run_suspended(run, conversation, at=AT), epoch=6)
        await records.disturb()

        taken = await successor.take_over("cto", "t1", owner="node-1:b", epoch=7)

        assert taken is not None
        assert (taken.box, taken.conversation, taken.status) == ("box-1", conversation, RunStatus.RUNNING)
        assert (taken.owner, taken.owner_epoch) == ("node-1:b", 7)
        assert await launcher.get("cto", "t1") == taken

    async def test_a_launch_told_twice_is_one_run(self, records: RecordHarness) -> None:
        store = await records.client(SANDBOX_RUNS)
        runs = self.kind(store)
        records.lose_reply(store)
        first = await runs.open(LAUNCHED)
        running = await runs.change("cto", "t1", lambda run: run_suspended(run, {}, at=AT), epoch=6)

        again = await runs.open(LAUNCHED)

        assert (first, again) == (LAUNCHED, running)

    async def test_another_launch_of_the_turn_does_not_take_its_record(self, records: RecordHarness) -> None:
        runs = self.kind(await records.client(SANDBOX_RUNS))
        await runs.open(LAUNCHED)

        with pytest.raises(Conflict):
            await runs.open(replace(LAUNCHED, launch_id="l2", box="box-2"))

        assert await runs.get("cto", "t1") == LAUNCHED

    async def test_the_runs_of_a_seat_are_listed_and_no_other_seats(self, records: RecordHarness) -> None:
        runs = self.kind(await records.client(SANDBOX_RUNS))
        others = [replace(LAUNCHED, turn_id="t2"), replace(LAUNCHED, handle="cto.eu"), replace(LAUNCHED, handle="ceo")]
        for run in (LAUNCHED, *others):
            await runs.open(run)

        assert {run.turn_id for run in await runs.of_seat("cto")} == {"t1", "t2"}
        assert [run.handle for run in await runs.of_seat("cto.eu")] == ["cto.eu"]
        assert await runs.of_seat("coo") == []
        assert len(await runs.every()) == 4

    async def test_of_many_resumes_of_a_run_one_has_it(self, records: RecordHarness) -> None:
        clients = [self.kind(await records.client(SANDBOX_RUNS)) for _ in range(3)]
        await clients[0].open(replace(LAUNCHED, status=RunStatus.RUNNING))

        claims = await asyncio.gather(
            *(
                each.change("cto", "t1", lambda run: run_resumed(run, "l1", at=AT), epoch=6)
                for each in clients
                for _ in range(3)
            )
        )

        assert sum(claim is not None for claim in claims) == 1

    async def test_a_resume_that_failed_gives_the_run_back_where_it_stood(self, records: RecordHarness) -> None:
        runs = self.kind(await records.client(SANDBOX_RUNS))
        waiting = await runs.open(replace(LAUNCHED, status=RunStatus.AWAITING_CLARIFICATION))
        await runs.change("cto", "t1", lambda run: run_resumed(run, "l1", at=AT), epoch=6)

        await runs.change("cto", "t1", lambda run: run_given_back(run, at=AT), epoch=6)

        assert await runs.get("cto", "t1") == waiting

    async def test_one_of_many_charges_a_run(self, records: RecordHarness) -> None:
        clients = [self.kind(await records.client(SANDBOX_RUNS)) for _ in range(3)]
        await clients[0].open(LAUNCHED)
        await records.disturb()

        charging = await asyncio.gather(
            *(each.mark_charged("cto", "t1", by=f"c{number}", epoch=6) for number, each in enumerate(clients))
        )

        assert sorted(charging) == [False, False, True]

    async def test_who_marked_a_charge_and_never_heard_of_it_still_charges(self, records: RecordHarness) -> None:
        store = await records.client(SANDBOX_RUNS)
        runs = self.kind(store)
        await runs.open(LAUNCHED)
        records.cut_after_write(store)
        await goes_unheard(runs.mark_charged("cto", "t1", by="c1", epoch=6))
        await records.mend(store)

        assert await runs.mark_charged("cto", "t1", by="c1", epoch=6)
        assert not await runs.mark_charged("cto", "t1", by="c2", epoch=6)

    @pytest.mark.spec("C-135")
    async def test_a_settled_run_is_met_by_nobody_again(self, records: RecordHarness) -> None:
        here, there = self.kind(await records.client(SANDBOX_RUNS)), self.kind(await records.client(SANDBOX_RUNS))
        await here.open(LAUNCHED)

        settled = await here.settle("cto", "t1", epoch=6)
        await records.disturb()

        assert settled == LAUNCHED
        assert await there.get("cto", "t1") is None
        assert (await there.of_seat("cto"), await there.every()) == ([], [])
        assert await there.take_over("cto", "t1", owner="node-1:b", epoch=7) is None
        assert not await there.mark_charged("cto", "t1", by="c1", epoch=7)
        assert await there.settle("cto", "t1", epoch=7) is None

    @pytest.mark.spec("C-134")
    async def test_no_clock_ends_a_run(self, records: RecordHarness) -> None:
        store = await records.client(SANDBOX_RUNS)
        runs = self.kind(store)
        await runs.open(LAUNCHED)

        await records.advance(records.quiet_s)

        assert store.age_s is None
        assert await runs.every() == [LAUNCHED]

    async def test_what_a_newer_build_wrote_into_a_run_stays(self, records: RecordHarness) -> None:
        store = await records.client(SANDBOX_RUNS)
        runs = self.kind(store)
        await runs.open(LAUNCHED)
        await add_fields(store, KEY, outbox=[{"answer": 1}])

        await runs.take_over("cto", "t1", owner="node-1:b", epoch=7)

        assert (await fields(store, KEY))["outbox"] == [{"answer": 1}]

    async def test_a_run_that_cannot_be_read_is_neither_gone_nor_over(self, records: RecordHarness) -> None:
        store = await records.client(SANDBOX_RUNS)
        runs = self.kind(store)
        await runs.open(LAUNCHED)

        await has_no_answer(
            records,
            store,
            lambda: runs.open(LAUNCHED),
            lambda: runs.get("cto", "t1"),
            lambda: runs.of_seat("cto"),
            runs.every,
            lambda: runs.change("cto", "t1", lambda run: run, epoch=6),
            lambda: runs.take_over("cto", "t1", owner="node-1:b", epoch=7),
            lambda: runs.mark_charged("cto", "t1", by="c1", epoch=6),
            lambda: runs.settle("cto", "t1", epoch=6),
        )
        await damage(store, KEY)

        for call in (runs.get("cto", "t1"), runs.of_seat("cto"), runs.every(), runs.settle("cto", "t1", epoch=6)):
            with pytest.raises(Unavailable):
                await call


class RunFencePromises(Contract):
    """A former holder's late write bounces, whatever it is."""

    kind: ClassVar[type[SandboxRuns]] = SandboxRuns

    async def _taken(self, records: RecordHarness) -> tuple[SandboxRuns, SandboxRun]:
        runs = self.kind(await records.client(SANDBOX_RUNS))
        await runs.open(replace(LAUNCHED, status=RunStatus.RUNNING))
        taken = await runs.take_over("cto", "t1", owner="node-1:b", epoch=7)
        assert taken is not None
        return runs, taken

    @pytest.mark.spec("S-073")
    async def test_a_change_from_before_the_owners_tenure_is_refused(self, records: RecordHarness) -> None:
        runs, taken = await self._taken(records)

        with pytest.raises(Fenced):
            await runs.change("cto", "t1", lambda run: run_resumed(run, "l1", at=AT), epoch=6)

        assert await runs.get("cto", "t1") == taken

    @pytest.mark.spec("S-073")
    async def test_a_former_holder_cannot_take_a_run_back(self, records: RecordHarness) -> None:
        runs, taken = await self._taken(records)

        with pytest.raises(Fenced):
            await runs.take_over("cto", "t1", owner="node-0:a", epoch=6)

        assert await runs.get("cto", "t1") == taken

    @pytest.mark.spec("S-073")
    async def test_a_former_holder_cannot_mark_a_charge(self, records: RecordHarness) -> None:
        runs, taken = await self._taken(records)

        with pytest.raises(Fenced):
            await runs.mark_charged("cto", "t1", by="node-0:a", epoch=6)

        assert await runs.get("cto", "t1") == taken

    @pytest.mark.spec("S-073")
    async def test_a_former_holder_cannot_settle_a_run(self, records: RecordHarness) -> None:
        runs, taken = await self._taken(records)

        with pytest.raises(Fenced):
            await runs.settle("cto", "t1", epoch=6)

        assert await runs.get("cto", "t1") == taken

    @pytest.mark.spec("S-073")
    async def test_a_former_holder_cannot_launch_over_its_successors_run(self, records: RecordHarness) -> None:
        runs, taken = await self._taken(records)

        with pytest.raises(Fenced):
            await runs.open(LAUNCHED)

        assert await runs.get("cto", "t1") == taken

    async def test_a_take_over_between_a_read_and_its_write_fences_the_write(self, records: RecordHarness) -> None:
        store = await records.client(SANDBOX_RUNS)
        former, successor = self.kind(store), self.kind(await records.client(SANDBOX_RUNS))
        await former.open(replace(LAUNCHED, status=RunStatus.RUNNING))
        records.withhold(store)

        async def overtake() -> SandboxRun | None:
            await records.quiet()
            taken = await successor.take_over("cto", "t1", owner="node-1:b", epoch=7)
            await records.deliver(store)
            return taken

        settled, taken = await asyncio.gather(former.settle("cto", "t1", epoch=6), overtake(), return_exceptions=True)

        assert isinstance(settled, Fenced | Unavailable)
        assert await successor.get("cto", "t1") == taken

    async def test_the_epoch_of_the_record_itself_may_change_it(self, records: RecordHarness) -> None:
        runs, taken = await self._taken(records)

        changed = await runs.change("cto", "t1", lambda run: run_resumed(run, "l1", at=AT), epoch=taken.owner_epoch)

        assert changed is not None
        assert changed.status is RunStatus.RESUMED
