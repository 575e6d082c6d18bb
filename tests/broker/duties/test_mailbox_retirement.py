"""Two nodes on one broker: a removed seat's mailbox goes with its mail, and a seat added again begins anew."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from crewlet import topics
from crewlet.backends.nats import EmbeddedBroker, JetStreamLog, open_buckets
from crewlet.backends.nats.queue import JetStreamQueue
from crewlet.base import limits
from crewlet.base.clock import SystemClock
from crewlet.base.errors import Unavailable
from crewlet.coordination import (
    MAILBOXES,
    SANDBOX_RUNS,
    KvLeases,
    Mailboxes,
    RecordStore,
    SandboxRuns,
    leases_slot,
    seat_resource,
)
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.duties import DutyRunner, DutyTimes, MailboxSweep, RetirementParts, mailbox_job, maintenance
from crewlet.duties.duty import Duty
from crewlet.node.mailboxes import ensure_mailboxes
from crewlet.queue import Subscription, inbox_of, mailboxes_of
from crewlet.testing import SeededIds, wait_until
from crewlet.testing.brokers import running_broker
from crewlet.testing.contracts.queue_handlers import Recorder
from tests.broker.queue.rig import Company, Node, event

pytestmark = pytest.mark.slow

TTL_S, GRACE_S = 6.0, 1.5
TIMES = DutyTimes("maintenance", every_s=0.3, ttl_s=4.0)


class Roster:
    """The company's agent seats, as every node has applied them."""

    def __init__(self, *handles: str) -> None:
        self.handles = set(handles)

    async def agent_handles(self) -> frozenset[str]:
        return frozenset(self.handles)


class Member:
    """A node with its buckets, its leases and its duties."""

    def __init__(self, name: str, node: Node, stores: dict[str, RecordStore], roster: Roster) -> None:
        self.name, self.node, self.roster = name, node, roster
        self.queue: JetStreamQueue = node.queue
        self.registry = Mailboxes(stores[MAILBOXES.name])
        clock = SystemClock()
        self.leases = KvLeases(
            leases=stores[LEASES.name],
            duties=stores[DUTIES.name],
            epochs=stores[EPOCHS.name],
            clock=clock,
            ids=SeededIds(len(name)),
        )
        parts = RetirementParts(
            leases=self.leases,
            mailboxes=self.registry,
            runs=SandboxRuns(stores[SANDBOX_RUNS.name]),
            queue=node.queue,
            log=JetStreamLog(node.api, ids=SeededIds(sum(map(ord, name)) + 1)),
            clock=clock,
            ids=SeededIds(sum(map(ord, name))),
            owner=f"{name}:1",
            node_id=name,
            ttl_s=TTL_S,
        )
        work = maintenance([mailbox_job(MailboxSweep(roster, parts))]).work
        self.duty = Duty(times=TIMES, work=work)
        self.runner = DutyRunner(self.leases, owner=f"{name}:1", node_id=name, clock=clock, roles=("workers",))

    async def ensure(self) -> None:
        await ensure_mailboxes(self.queue, self.registry, sorted(self.roster.handles))

    async def there(self, handle: str) -> set[Subscription]:
        return {*await self.queue.list_subscriptions(topics.agent_topics(handle))}

    async def has_duty(self) -> bool:
        return any(each.held for each in self.runner.status())


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with running_broker(sync_interval_s=60.0) as broker:
        yield broker


@pytest.fixture
async def members(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Member]]:
    monkeypatch.setattr(limits, "MAILBOX_GRACE_S", GRACE_S)
    slots = [leases_slot(TTL_S), DUTIES, EPOCHS, MAILBOXES, SANDBOX_RUNS]
    roster = Roster("ceo", "cto")
    async with AsyncExitStack() as stack:
        company, members = Company(broker, stack), list[Member]()
        for name in ("one", "two"):
            node = await company.node(name)
            opened = await open_buckets(node.api, slots, storage=broker.storage, ids=SeededIds(len(members)))
            members.append(Member(name, node, {key: bucket.store for key, bucket in opened.items()}, roster))
            stack.push_async_callback(members[-1].leases.close)
            stack.push_async_callback(members[-1].runner.stop)
        yield members


@pytest.mark.spec("S-140", "S-145", "S-147")
async def test_a_removed_seats_mailboxes_and_mail_go_and_a_seat_added_again_begins_anew(members: list[Member]) -> None:
    one, two = members
    for member in members:
        await member.ensure()
    await one.queue.ensure_subscription(inbox_of("stray"))
    for number in range(5):
        await one.queue.publish(topics.agent_inbox("cto"), event(f"old-{number}"))
    one.roster.handles.discard("cto")
    for member in members:
        member.runner.start([member.duty])

    async def gone() -> bool:
        return not await one.there("cto") and not await one.there("stray")

    await wait_until(gone, what="the mailboxes of removed seats to go")
    kept = await one.there("ceo")
    left = await one.node.stored()
    await wait_until(lambda: _unrecorded(one, "cto"), what="the record to go")
    held = await one.leases.holder(seat_resource("cto"))
    one.roster.handles.add("cto")
    await two.ensure()
    recorder = Recorder()
    await two.queue.subscribe(inbox_of("cto"), recorder)
    await one.queue.publish(topics.agent_inbox("cto"), event("new"))
    await recorder.handled(1)

    assert kept == set(mailboxes_of("ceo"))
    assert left == 0
    assert held is None
    assert recorder.ids == ["new"]
    assert await one.there("cto") == set(mailboxes_of("cto"))


@pytest.mark.spec("S-177", "S-178")
async def test_maintenance_moves_at_once_with_a_stop_and_after_its_claim_with_a_death(members: list[Member]) -> None:
    one, two = members
    one.runner.start([one.duty])
    await wait_until(one.has_duty, what="the first node to have the duty")
    two.runner.start([two.duty])

    await one.runner.stop()
    await wait_until(two.has_duty, timeout_s=3 * TIMES.every_s + 2, what="the second to have it")
    await two.node.vanish()
    third = DutyRunner(one.leases, owner="three:1", node_id="three", clock=SystemClock(), roles=("workers",))
    third.start([one.duty])
    try:
        await wait_until(
            lambda: _is_held(third), timeout_s=TIMES.ttl_s + 3 * TIMES.every_s + 3, what="a third to have it"
        )
    finally:
        await third.stop()


async def test_a_mailbox_made_without_a_record_is_found_and_one_that_was_lost_is_made_again(
    members: list[Member],
) -> None:
    one, _ = members
    await one.queue.ensure_subscriptions(mailboxes_of("ceo"))
    await one.queue.delete_subscription(inbox_of("ceo"))

    one.runner.start([one.duty])

    async def whole() -> bool:
        return await one.there("ceo") == set(mailboxes_of("ceo")) and await one.registry.get("cto") is not None

    await wait_until(whole, what="the company's mailboxes to be whole")


async def _unrecorded(member: Member, handle: str) -> bool:
    try:
        return await member.registry.get(handle) is None
    except Unavailable:
        return False


async def _is_held(runner: DutyRunner) -> bool:
    return any(each.held for each in runner.status())
