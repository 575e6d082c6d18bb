"""Every seat's mailboxes exist, recorded before they are made, whoever is to serve them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import MAILBOXES, Mailboxes, SeatMailbox, Stored
from crewlet.node.mailboxes import control_of, ensure_mailboxes, inbox_of, reflect_of
from crewlet.notify import inbound_subscription
from crewlet.queue import Subscription, mailboxes_of
from crewlet.testing import VirtualClock

pytestmark = pytest.mark.virtual_time


class Broker:
    """Keeps the mailboxes that were asked for, and what was on record just then; that of ``broken`` cannot be had."""

    def __init__(self, store: MemoryRecordStore, broken: str = "") -> None:
        self.made: list[Subscription] = []
        self.recorded: list[frozenset[str]] = []
        self._store = store
        self._broken = broken

    async def ensure_subscriptions(self, subscriptions: Collection[Subscription]) -> None:
        if any(subscription.topic == self._broken for subscription in subscriptions):
            raise Unavailable("the broker is away")
        self.recorded.append(frozenset(self._store.bucket.keys(["seat.>"])))
        self.made += subscriptions


class Node:
    """A node's broker and its record of mailboxes."""

    def __init__(self, broken: str = "") -> None:
        self.store = MemoryRecordStore(MemoryBucket(MAILBOXES, VirtualClock()))
        self.registry = Mailboxes(self.store)
        self.broker = Broker(self.store, broken)

    async def ensure(self, *handles: str) -> None:
        await ensure_mailboxes(self.broker, self.registry, handles)  # pyright: ignore[reportArgumentType] - its one verb

    async def found(self, handle: str) -> Stored[SeatMailbox]:
        stored = await self.registry.get(handle)
        assert stored is not None
        return stored

    async def retiring(self, handle: str) -> Stored[SeatMailbox]:
        """The mark of a sweep that has just begun to retire a seat's mailbox."""
        await self.registry.register(handle)
        absent = await self.registry.stamp_absent(await self.found(handle))
        assert absent is not None
        await asyncio.sleep(limits.MAILBOX_GRACE_S)
        mark = await self.registry.mark(absent, by="sweep")
        assert mark is not None
        return mark


def elapsed_s() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.spec("S-133")
async def test_a_seat_has_an_inbox_a_control_and_a_reflect_mailbox_and_the_company_one_for_what_arrives() -> None:
    node = Node()

    await node.ensure("ceo", "cto")

    assert set(node.broker.made) == {
        inbound_subscription(),
        *(mailbox(handle) for mailbox in (inbox_of, control_of, reflect_of) for handle in ("ceo", "cto")),
    }
    assert len(node.broker.made) == 7


async def test_the_groups_of_a_seats_mailboxes_are_named_after_it() -> None:
    assert [mailbox("ceo").group for mailbox in (inbox_of, control_of, reflect_of)] == [
        "agent-ceo",
        "agent-ceo-control",
        "agent-ceo-reflect",
    ]


async def test_a_mailbox_that_cannot_be_had_is_not_passed_over() -> None:
    with pytest.raises(Unavailable):
        await Node(broken=inbox_of("ceo").topic).ensure("ceo", "cto")


@pytest.mark.spec("C-081", "S-145")
async def test_every_seat_is_on_record_before_any_mailbox_is_made() -> None:
    node = Node()

    await node.ensure("ceo", "cto")

    assert node.broker.recorded == [frozenset({"seat.ceo", "seat.cto"})]


async def test_what_is_on_record_is_not_written_again() -> None:
    node = Node()
    await node.ensure("ceo", "cto")
    before = await node.store.last_revision()

    await node.ensure("ceo", "cto")

    assert await node.store.last_revision() == before


@pytest.mark.spec("S-146")
@pytest.mark.parametrize("silent", [False, True])
async def test_a_seat_that_cannot_be_recorded_has_its_mailboxes_all_the_same(silent: bool) -> None:
    node = Node()
    node.store.link.cut, node.store.link.silent = not silent, silent

    await node.ensure("ceo")

    assert set(node.broker.made) == {inbound_subscription(), *mailboxes_of("ceo")}
    assert elapsed_s() <= limits.MAILBOXES_REGISTER_MAX_S


async def test_a_seat_that_was_missing_is_present_again() -> None:
    node = Node()
    await node.registry.register("ceo")
    await node.registry.stamp_absent(await node.found("ceo"))

    await node.ensure("ceo")

    assert (await node.found("ceo")).record.absent_since is None


@pytest.mark.spec("S-160")
async def test_a_mailbox_that_is_being_retired_is_made_once_that_is_over() -> None:
    node = Node()
    mark = await node.retiring("ceo")
    walk = asyncio.ensure_future(node.ensure("ceo", "cto"))
    await asyncio.sleep(5)
    made_before = set(node.broker.made)

    await node.registry.forget(mark)
    await walk

    assert made_before == {inbound_subscription(), *mailboxes_of("cto")}
    assert set(node.broker.made) == made_before | set(mailboxes_of("ceo"))
    assert node.broker.recorded[-1] == frozenset({"seat.ceo", "seat.cto"})


@pytest.mark.spec("S-161")
async def test_a_retirement_that_does_not_end_in_time_is_taken_over() -> None:
    node = Node()
    mark = await node.retiring("ceo")
    began_s = elapsed_s()

    await node.ensure("ceo")

    assert elapsed_s() - began_s == pytest.approx(2 * 30.0, abs=1.0)
    assert not await node.registry.forget(mark)
    assert (await node.found("ceo")).record.is_retiring is False
    assert set(mailboxes_of("ceo")) <= set(node.broker.made)


async def test_a_store_that_goes_while_a_retirement_is_waited_for_costs_no_mailbox() -> None:
    node = Node()
    await node.retiring("ceo")
    walk = asyncio.ensure_future(node.ensure("ceo"))
    await asyncio.sleep(5)
    node.store.link.cut = True

    await walk

    assert set(mailboxes_of("ceo")) <= set(node.broker.made)
