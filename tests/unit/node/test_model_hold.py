"""A company without a model: its mail waits at the broker, whole and undelivered, until there is one."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.backends.memory.records import MemoryBucket
from crewlet.base.errors import Unavailable
from crewlet.coordination import LEDGER
from crewlet.inbox import partition_of
from crewlet.node.model_hold import NO_MODEL, ModelHold
from crewlet.node.seat_holds import SeatHolds
from crewlet.org import Organization
from crewlet.queue import Defer, Subscription, inbox_of
from crewlet.testing import VirtualClock, wait_until
from tests.unit.inbox.inbox_kit import Node, event
from tests.unit.node.companies import acme

pytestmark = pytest.mark.virtual_time

INBOX = inbox_of("ceo")
WITHOUT = acme(providers={"llm": {}})


class Queue(MemoryQueue):
    """Takes its time over a hold."""

    holds_after_s = 0.0

    async def hold(self, subscription: Subscription, name: str) -> None:
        await asyncio.sleep(self.holds_after_s)
        await super().hold(subscription, name)


class SeatHere:
    """The ceo's seat on one node, of a company that may change."""

    def __init__(self, broker: MemoryBroker, company: Organization, *, holds_after_s: float = 0) -> None:
        self.company = company
        self.queue = Queue(broker, node="one")
        self.queue.holds_after_s = holds_after_s
        self.holds = SeatHolds(self.queue, lambda _: 7)
        self.model_hold = ModelHold(lambda: self.company, self.holds)
        self.node = Node(MemoryBucket(LEDGER, VirtualClock()), holds=self.model_hold)

    async def attach(self, *, held: bool = True) -> None:
        self.holds.open("ceo")
        if held:
            await self.model_hold.refuses("ceo")
        await self.queue.subscribe_batch(INBOX, self.node.inbox.handle, partition=partition_of)

    async def apply(self, company: Organization) -> None:
        self.company = company
        await self.model_hold.company_changed()

    async def works(self, count: int) -> None:
        await wait_until(lambda: len(self.node.triggers) == count, what=f"{count} turns")


@pytest.fixture
async def broker() -> MemoryBroker:
    return MemoryBroker(VirtualClock())


def deliveries(broker: MemoryBroker) -> list[int]:
    """How often each message that waits was delivered."""
    return [mail.deliveries for mail in broker.retained(INBOX)]


@pytest.mark.spec("E-091")
async def test_what_arrives_without_a_model_runs_once_an_apply_brings_one(broker: MemoryBroker) -> None:
    seat = SeatHere(broker, WITHOUT)
    await seat.attach()
    await seat.queue.publish(INBOX.topic, event())
    await asyncio.sleep(60)
    before = len(seat.node.triggers)

    await seat.apply(acme())

    await seat.works(1)
    assert before == 0


@pytest.mark.spec("E-091")
async def test_a_delivery_that_comes_all_the_same_is_handed_back_with_the_hold_already_taken(
    broker: MemoryBroker,
) -> None:
    seat = SeatHere(broker, acme())
    await seat.attach()
    seat.company = WITHOUT
    await seat.queue.publish(INBOX.topic, event())
    await asyncio.sleep(60)
    waiting, held = deliveries(broker), seat.holds.of("ceo")

    await seat.apply(acme())

    await seat.works(1)
    assert (waiting, held) == ([1], {NO_MODEL})


@pytest.mark.spec("E-092")
async def test_however_often_the_seat_moves_meanwhile_its_mail_spends_no_delivery(broker: MemoryBroker) -> None:
    """Held after the attach, each holder would hand the mail back once, and the twenty-fifth bury it."""
    for _holder in range(30):
        seat = SeatHere(broker, WITHOUT)
        await seat.attach()
        if _holder == 0:
            await seat.queue.publish(INBOX.topic, event())
        await asyncio.sleep(60)
        await seat.queue.close()

    assert deliveries(broker) == [0]


@pytest.mark.spec("E-092")
async def test_a_company_that_loses_its_last_model_keeps_its_mail_from_then_on(broker: MemoryBroker) -> None:
    seat = SeatHere(broker, acme())
    await seat.attach()
    await seat.apply(WITHOUT)

    await seat.queue.publish(INBOX.topic, event())
    await asyncio.sleep(60)

    assert (deliveries(broker), seat.node.triggers) == ([0], [])


@pytest.mark.spec("E-047")
async def test_a_hold_that_the_queue_refuses_defers_all_the_same(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    seat = SeatHere(broker, WITHOUT)
    seat.holds.open("ceo")

    async def away(*_: object) -> None:
        raise Unavailable("the broker is away")

    monkeypatch.setattr(seat.queue, "hold", away)

    with capture_logs():
        outcome = await seat.model_hold.refuses("ceo")

    assert isinstance(outcome, Defer)


async def test_a_model_that_comes_while_the_hold_is_being_taken_leaves_none_behind(broker: MemoryBroker) -> None:
    """Lifted before it was there, it would stand for ever."""
    seat = SeatHere(broker, WITHOUT, holds_after_s=1)
    await seat.attach(held=False)
    taking = asyncio.create_task(seat.model_hold.refuses("ceo"))
    await asyncio.sleep(0.5)

    await seat.apply(acme())
    refused = await taking
    await seat.queue.publish(INBOX.topic, event())

    await seat.works(1)
    assert refused is None


async def test_another_hold_stands_when_this_one_is_lifted(broker: MemoryBroker) -> None:
    seat = SeatHere(broker, WITHOUT)
    await seat.attach()
    await seat.holds.hold("ceo", "another")
    await seat.queue.publish(INBOX.topic, event())

    await seat.apply(acme())
    await asyncio.sleep(60)

    assert seat.node.triggers == []
