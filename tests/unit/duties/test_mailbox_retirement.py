"""One retirement among claims, slow brokers, runs out of reach, returning seats and deaths half way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from crewlet.backends.memory import MemoryLog
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.fence import OpenFence
from crewlet.coordination import MAILBOXES, SANDBOX_RUNS, ClaimRefused, Lease, RunStatus, seat_resource
from crewlet.duties import Duty, DutyRunner, DutyTimes
from crewlet.node.mailboxes import ensure_mailboxes
from crewlet.queue import LogRecord, Subscription, control_of, inbox_of, mailboxes_of
from tests.unit.coordination.lease_rig import TTL_S
from tests.unit.duties.mailbox_rig import DAY_S, TICK_S, Boxes, Company, Sweeper, elapsed_s

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def company() -> AsyncIterator[Company]:
    company = Company()
    yield company
    await company.close()


def before_first_delete(sweeper: Sweeper, work: Callable[[], Awaitable[None]]) -> None:
    """Do ``work`` within the retirement, after its mark and before anything is deleted."""

    async def once(_: Subscription) -> None:
        sweeper.queue.before_delete = None
        await work()

    sweeper.queue.before_delete = once


@pytest.mark.spec("S-154", "S-156")
async def test_no_node_can_claim_the_seat_while_its_mailbox_is_retired_and_every_node_at_once_after(
    company: Company,
) -> None:
    sweeper, other = company.sweeper("a"), company.rig.process("b")
    await company.gone_for_a_day("cto", sweeper)
    seen: list[Lease | ClaimRefused | None] = []

    async def claim() -> None:
        seen.append(await other.leases.holder(seat_resource("cto")))
        seen.append(await other.leases.claim(seat_resource("cto"), owner=other.owner, ttl_s=TTL_S))

    before_first_delete(sweeper, claim)
    await sweeper.tick()
    seen.append(await other.leases.claim(seat_resource("cto"), owner=other.owner, ttl_s=TTL_S))

    during, refused, after = seen
    assert isinstance(during, Lease)
    assert during.owner != sweeper.process.owner
    assert (during.preferred, during.owner.partition(":")[0]) == ("a", "a")
    assert isinstance(refused, ClaimRefused)
    assert isinstance(after, Lease)
    assert not after.after_lapse


@pytest.mark.spec("S-154")
async def test_the_seats_lease_is_held_until_the_last_of_its_mailboxes_and_its_record_are_gone(
    company: Company,
) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)
    held: list[bool] = []

    async def look(_: Subscription) -> None:
        held.append(await sweeper.process.leases.holder(seat_resource("cto")) is not None)

    sweeper.queue.before_delete = look
    await sweeper.tick()

    assert held == [True, True, True]


async def test_a_retired_seats_journal_goes_too_and_a_namesake_goes_on_with_nothing(company: Company) -> None:
    sweeper = company.sweeper()
    log = MemoryLog(company.journal)
    await log.append("cto", [LogRecord("opened.1", b"a turn that was left")], expected=0)
    await company.gone_for_a_day("cto", sweeper)

    await sweeper.tick()

    assert await log.read("cto") == []


@pytest.mark.spec("S-155")
@pytest.mark.parametrize("lasts_s", [TTL_S / 4, 10 * TTL_S], ids=["each delete slow", "one that hangs"])
async def test_a_retirement_stops_at_half_a_lease_and_is_tried_again(company: Company, lasts_s: float) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)

    async def slow(_: Subscription) -> None:
        await asyncio.sleep(lasts_s)

    sweeper.queue.before_delete = slow
    began_s = elapsed_s()
    why, said = await sweeper.failed_tick()
    took_s = elapsed_s() - began_s
    record = await company.record("cto")
    sweeper.queue.before_delete = None
    await sweeper.tick()

    assert "cto" in why
    assert said == ["seat_mailbox_retirement_unmarked"]
    assert took_s == pytest.approx(TTL_S / 2, abs=0.5)
    assert record is not None
    assert not record.is_retiring
    assert await sweeper.process.leases.holder(seat_resource("cto")) is None
    assert company.mailboxes_left("cto") == set()


async def test_a_machine_that_slept_in_the_middle_deletes_nothing_more(company: Company) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)

    async def sleep() -> None:
        company.rig.clock.slept_s += TTL_S

    before_first_delete(sweeper, sleep)
    await sweeper.failed_tick()

    assert len(sweeper.queue.deleted) == 1
    assert len(company.mailboxes_left("cto")) == 2


@pytest.mark.spec("S-162")
async def test_a_mailbox_that_cannot_be_deleted_is_unmarked_and_tried_on_the_next_tick(company: Company) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)

    async def refuse(subscription: Subscription) -> None:
        if subscription == control_of("cto"):
            raise Unavailable("the broker does not answer")

    sweeper.queue.before_delete = refuse
    why, _ = await sweeper.failed_tick()
    record, left = await company.record("cto"), company.mailboxes_left("cto")
    sweeper.queue.before_delete = None
    lines = await sweeper.tick()

    assert why == "cto: the broker does not answer"
    assert record is not None
    assert not record.is_retiring
    assert control_of("cto") in left
    assert [line["event"] for line in lines] == ["seat_mailbox_retired"]
    assert company.mailboxes_left("cto") == set()


@pytest.mark.spec("S-162")
async def test_a_mark_that_died_with_its_sweep_is_resumed_a_quarter_of_an_hour_later(company: Company) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)
    await company.registry.mark(await company.stored("cto"), by="dead")

    await asyncio.sleep(limits.MAILBOX_MARK_ABANDONED_S - 1)
    early = await sweeper.tick()
    kept = company.mail_of("cto")
    await asyncio.sleep(1)
    late = await sweeper.tick()

    assert early == []
    assert kept == 1
    assert [line["event"] for line in late] == ["seat_mailbox_retirement_resumed", "seat_mailbox_retired"]


@pytest.mark.spec("S-159")
async def test_of_two_sweeps_at_once_one_retires(company: Company) -> None:
    sweepers = [company.sweeper(name) for name in ("a", "b")]
    await company.gone_for_a_day("cto", sweepers[0])

    lines = await sweepers[0].tick(), await sweepers[1].tick()
    await company.gone_for_a_day("cto", sweepers[0])
    await asyncio.gather(*(sweeper.sweep.run(OpenFence()) for sweeper in sweepers))

    assert [[line["event"] for line in each] for each in lines] == [["seat_mailbox_retired"], []]
    assert sorted(len(sweeper.queue.deleted) for sweeper in sweepers) in ([0, 6], [3, 3])
    assert company.mailboxes_left("cto") == set()


@pytest.mark.spec("S-157")
async def test_a_seats_runs_are_kept_for_the_day_and_ended_before_its_mailboxes_go(company: Company) -> None:
    boxes = Boxes()
    sweeper = company.sweeper(boxes=boxes)
    statuses = [RunStatus.RUNNING, RunStatus.AWAITING_CLARIFICATION, RunStatus.RESEED, RunStatus.RESUMED]
    for number, status in enumerate(statuses):
        await company.run("cto", f"t{number}", status)
    await company.run("ceo", "t9")
    await company.gone_for_a_day("cto", sweeper)
    kept = len(await company.runs.of_seat("cto"))
    runs_at_delete: list[int] = []

    async def look(_: Subscription) -> None:
        runs_at_delete.append(len(await company.runs.of_seat("cto")))

    sweeper.queue.before_delete = look
    await sweeper.tick()

    assert kept == 4
    assert runs_at_delete == [0, 0, 0]
    assert sorted(boxes.ended) == ["t0", "t1", "t2", "t3"]
    assert [run.turn_id for run in await company.runs.every()] == ["t9"]


@pytest.mark.spec("S-157")
async def test_a_run_that_cannot_be_ended_keeps_the_mailbox_and_those_that_were_ended_are_gone(
    company: Company,
) -> None:
    boxes = Boxes()
    boxes.out_of_reach = {"t1"}
    sweeper = company.sweeper(boxes=boxes)
    for turn_id in ("t0", "t1"):
        await company.run("cto", turn_id)
    await company.gone_for_a_day("cto", sweeper)

    await sweeper.failed_tick()
    record, left = await company.record("cto"), await company.runs.of_seat("cto")
    kept = company.mail_of("cto")
    boxes.out_of_reach.clear()
    lines = await sweeper.tick()

    assert record is not None
    assert not record.is_retiring
    assert [run.turn_id for run in left] == ["t1"]
    assert kept == 1
    assert [line["event"] for line in lines] == ["seat_mailbox_retired"]


@pytest.mark.spec("S-157")
async def test_runs_that_cannot_be_read_keep_the_mailbox(company: Company) -> None:
    sweeper = company.sweeper(boxes=Boxes())
    await company.gone_for_a_day("cto", sweeper)
    sweeper.links[SANDBOX_RUNS.name].link.cut = True

    await sweeper.failed_tick()

    record = await company.record("cto")
    assert record is not None
    assert not record.is_retiring
    assert company.mail_of("cto") == 1


async def test_a_node_that_can_end_no_runs_leaves_the_seat_and_its_record_alone(company: Company) -> None:
    sweeper = company.sweeper()
    await company.run("cto", "t1")
    await company.gone_for_a_day("cto", sweeper)
    before = company.buckets[MAILBOXES.name].newest()

    why, said = await sweeper.failed_tick()

    assert "cannot reach a box" in why
    assert said == []
    assert company.buckets[MAILBOXES.name].newest() == before
    assert await sweeper.process.leases.hints("seat") == []


@pytest.mark.spec("S-158")
async def test_a_node_that_can_end_no_runs_leaves_the_seat_to_one_that_can(company: Company) -> None:
    """The duty is given back by the node that could not do all of it, and its peer has it by its next tick."""
    times = DutyTimes("maintenance", every_s=TICK_S, ttl_s=3 * TICK_S)
    sweepers = {"a": company.sweeper("a"), "b": company.sweeper("b", boxes=Boxes())}
    await company.run("cto", "t1")
    await company.gone_for_a_day("cto", sweepers["a"])
    runners: list[DutyRunner] = []
    for name, sweeper in sweepers.items():
        runner = DutyRunner(
            sweeper.process.leases,
            owner=sweeper.process.owner,
            node_id=name,
            clock=company.rig.clock,
            roles=("workers",),
        )
        runner.start([Duty(times=times, work=sweeper.sweep.run)])
        runners.append(runner)

    await asyncio.sleep(1)
    left = company.mail_of("cto"), len(await company.runs.every()), runners[0].problems()
    await asyncio.sleep(TICK_S)

    assert left[:2] == (1, 1)
    assert "cannot reach a box" in left[2][0]
    assert company.mailboxes_left("cto") == set()
    assert await company.runs.every() == []
    for runner in runners:
        await runner.stop()


@pytest.mark.spec("S-160")
async def test_a_seat_added_back_during_its_retirement_has_an_empty_mailbox_after_it(company: Company) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper, mail=5)
    walks: list[asyncio.Task[None]] = []

    async def added_back() -> None:
        company.roster.handles.add("cto")
        walk = ensure_mailboxes(company.queue, company.registry, ["ceo", "cto"])
        walks.append(asyncio.ensure_future(walk))
        await asyncio.sleep(3)

    before_first_delete(sweeper, added_back)
    await sweeper.tick()
    await walks[0]

    assert company.mailboxes_left("cto") == set(mailboxes_of("cto"))
    assert company.mail_of("cto") == 0
    record = await company.record("cto")
    assert record is not None
    assert (record.is_retiring, record.absent_since) == (False, None)
    await company.write_to("cto", "new")
    assert company.mail_of("cto") == 1


@pytest.mark.spec("S-161")
async def test_a_delete_that_lands_after_the_seat_was_taken_over_is_made_good(company: Company) -> None:
    """The retirement's process stands still for longer than the node waits, and its delete arrives after all."""
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)

    async def stands_still(_: Subscription) -> None:
        until_s = elapsed_s() + limits.MAILBOX_RETIREMENT_WAIT_S + 10
        while elapsed_s() < until_s:
            try:
                await asyncio.sleep(until_s - elapsed_s())
            except asyncio.CancelledError:
                continue

    sweeper.queue.before_delete = stands_still
    retirement = asyncio.ensure_future(sweeper.failed_tick())
    await asyncio.sleep(1)
    company.roster.handles.add("cto")
    await ensure_mailboxes(company.queue, company.registry, ["cto"])
    made, there = elapsed_s(), company.mailboxes_left("cto")
    _, said = await retirement

    assert made - DAY_S == pytest.approx(limits.MAILBOX_RETIREMENT_WAIT_S + 1, abs=1)
    assert there == set(mailboxes_of("cto"))
    assert inbox_of("cto") in sweeper.queue.deleted
    assert said[-1] == "seat_mailbox_restored"
    assert company.mailboxes_left("cto") == set(mailboxes_of("cto"))


async def test_what_a_late_delete_took_is_made_again_by_the_next_tick_where_its_sweep_could_not(
    company: Company,
) -> None:
    sweeper, other = company.sweeper("a"), company.sweeper("b")
    await company.gone_for_a_day("cto", sweeper)

    async def taken_over_and_cut_off() -> None:
        company.roster.handles.add("cto")
        await company.registry.take_over((await company.stored("cto")).record)
        sweeper.links[MAILBOXES.name].link.cut = True

    before_first_delete(sweeper, taken_over_and_cut_off)
    await sweeper.failed_tick()
    gone = company.mailboxes_left("cto")
    await other.tick()

    assert gone == set()
    assert company.mailboxes_left("cto") == set(mailboxes_of("cto"))


async def test_a_retirement_that_is_cancelled_takes_its_mark_and_its_claim_back(company: Company) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)

    async def hang(_: Subscription) -> None:
        await asyncio.sleep(TTL_S)

    sweeper.queue.before_delete = hang
    task = asyncio.ensure_future(sweeper.tick())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait((task,))

    record = await company.record("cto")
    assert task.cancelled()
    assert record is not None
    assert not record.is_retiring
    assert await sweeper.process.leases.holder(seat_resource("cto")) is None


async def test_a_mark_whose_answer_was_lost_is_had_all_the_same(company: Company) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)
    sweeper.links[MAILBOXES.name].link.lose_reply()

    lines = await sweeper.tick()

    assert [line["event"] for line in lines] == ["seat_mailbox_retired"]


async def test_a_record_that_changed_since_it_was_read_is_left_alone(company: Company) -> None:
    sweeper = company.sweeper()
    await company.gone_for_a_day("cto", sweeper)
    claim = sweeper.process.leases.claim

    async def registered_meanwhile(*args: object, **kwargs: object) -> Lease | ClaimRefused:
        await company.registry.register("cto")
        return await claim(*args, **kwargs)  # pyright: ignore[reportArgumentType]

    sweeper.process.leases.claim = registered_meanwhile  # type: ignore[method-assign]
    lines = await sweeper.tick()

    assert [line["event"] for line in lines] == ["seat_mailbox_retirement_left"]
    assert company.mail_of("cto") == 1


@pytest.mark.spec("S-153")
async def test_a_claim_that_comes_first_keeps_the_mailbox(company: Company) -> None:
    """The seats' leases were listed without it, and it is there by the time of the claim."""
    sweeper, other = company.sweeper(), company.rig.process("b")
    await company.gone_for_a_day("cto", sweeper)
    due = sweeper.mailboxes.is_due

    async def claimed_meanwhile(read: object) -> bool:
        await company.claimed("cto", other)
        return await due(read)  # pyright: ignore[reportArgumentType]

    sweeper.mailboxes.is_due = claimed_meanwhile  # type: ignore[method-assign]
    lines = await sweeper.tick()

    assert [(line["event"], line["refused"]) for line in lines] == [("seat_mailbox_retirement_held", "held")]
    assert company.mail_of("cto") == 1
