"""A whole partition at a seat's inbox: one turn for all of it, and what is recorded, handed back and said of each."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from crewlet import topics
from crewlet.backends.memory.records import MemoryBucket
from crewlet.base.errors import Unavailable
from crewlet.base.ids import TurnId
from crewlet.coordination import LEDGER
from crewlet.events import Event
from crewlet.inbox import Decision, TurnOutcome, work_key_of
from crewlet.queue import Ack, Defer, Nak, message_identity
from crewlet.testing import VirtualClock
from tests.unit.inbox.inbox_kit import BROKE, BROKE_OUTSIDE, Node, batch_of
from tests.unit.inbox.wakes import SOURCES, body_of, changed, said

pytestmark = pytest.mark.virtual_time

PENNILESS = replace(BROKE, error="company, this day: 100 of 100 tokens", error_kind="budget_exhausted")


class Refusing:
    """Speaks against every turn, for as long as it is told to."""

    def __init__(self, why: str = "") -> None:
        self.why = why
        self.asked = 0

    async def refuses(self, handle: str) -> Defer | None:
        assert handle == "ceo"
        self.asked += 1
        await asyncio.sleep(0)
        return Defer(self.why) if self.why else None


@pytest.fixture
async def node() -> Node:
    return Node(MemoryBucket(LEDGER, VirtualClock()), sources=SOURCES)


async def burst(count: int = 3) -> list[Event]:
    return [await said(f"text {number}", f"m{number}", at_s=number) for number in range(1, count + 1)]


async def spoilt_update(event_id: str) -> Event:
    """An update whose own source cannot say what it is an update of."""
    whole = await changed("issue_updated", "a", event_id)
    return replace(whole, data=body_of(whole, metadata={}))


async def recorded(node: Node, *ids: str) -> list[bool]:
    return [await node.ledger.completion("ceo", each) is not None for each in ids]


async def test_a_burst_is_one_turn_and_each_of_it_is_recorded(node: Node) -> None:
    outcome = await node.gets_all(*await burst())

    assert outcome == Ack()
    assert node.steps == ["run", "settle done", "record"]
    assert await recorded(node, "m1", "m2", "m3") == [True, True, True]
    assert await recorded(node, node.triggers[0].told.id) == [False]


async def test_a_turn_has_the_fewest_deliveries_that_any_of_its_events_has(node: Node) -> None:
    await node.gets_all(*await burst(), headroom=4, spent=("m2",))

    assert node.triggers[0].headroom == 0


@pytest.mark.spec("E-105")
async def test_a_merge_is_told_with_its_partition_and_no_conversation(node: Node) -> None:
    await node.gets_all(*await burst(2))

    (merge,) = node.merges
    assert (merge.partition_key, merge.trigger_ids, merge.senders) == ("chat:D1", ("m1", "m2"), ("ann",))
    assert merge.work_key == work_key_of(["m1", "m2"])
    assert not hasattr(merge, "conversation_key")


@pytest.mark.spec("E-105")
async def test_the_same_merge_again_is_the_same_event(node: Node) -> None:
    """A batch that comes back is merged again, and is one row."""
    node.does = BROKE

    for _ in range(2):
        await node.gets_all(*await burst(2))

    told = [each.id for _, each in node.published if each.type == "notifications_coalesced"]
    assert len(told) == 2
    assert len(set(told)) == 1


async def test_one_event_alone_is_no_merge(node: Node) -> None:
    await node.gets_all(await said("a", "m1"))

    assert node.merges == []


@pytest.mark.spec("S-114")
async def test_what_was_worked_of_a_burst_is_skipped_and_the_rest_is_worked(node: Node) -> None:
    first, second, third = await burst()
    await node.gets_all(first, second)

    outcome = await node.gets_all(first, second, third)

    assert outcome == Ack()
    assert [each.id for each in node.triggers[1].events] == ["m3"]
    assert [skip.trigger_id for skip in node.skips] == ["m1", "m2"]


@pytest.mark.spec("E-103")
async def test_two_deliveries_of_one_event_are_one_event(node: Node) -> None:
    only = await said("a", "m1")

    await node.gets_all(only, only)

    assert [each.id for each in node.triggers[0].events] == ["m1"]
    assert node.merges == []


@pytest.mark.spec("E-103")
async def test_an_event_of_which_a_copy_has_deliveries_left_is_not_given_up(node: Node) -> None:
    node.does = BROKE
    only = await said("a", "m1")
    spent, fresh = batch_of(only, headroom=0), batch_of(only, headroom=5)

    for first, second in ((spent, fresh), (fresh, spent)):
        await node.inbox.handle(replace(first, deliveries=(*first.deliveries, *second.deliveries)))

    assert [trigger.headroom for trigger in node.triggers] == [5, 5]
    assert node.skips == []


@pytest.mark.spec("E-104")
async def test_what_cannot_be_merged_is_worked_one_by_one_the_others_put_back_first(node: Node) -> None:
    """A copy keeps its id, so that the ledger knows it, and is merged with nothing again."""
    spoilt = await spoilt_update("m1")
    others = [await changed("comment", "b", f"c{number}", at_s=number) for number in (1, 2)]

    with capture_logs():
        outcome = await node.gets_all(spoilt, *others)

    back = [each for topic, each in node.published if topic == topics.agent_inbox("ceo")]
    assert outcome == Ack()
    assert [each.id for each in node.triggers[0].events] == ["m1"]
    assert [each.id for each in back] == ["c1", "c2"]
    assert [body_of(each).partition_key for each in back] == ["", ""]
    assert all(message_identity(each) != each.id for each in back)
    assert await recorded(node, "m1", "c1", "c2") == [True, False, False]


@pytest.mark.spec("E-104")
async def test_a_tail_that_cannot_be_put_back_ends_the_attempt_before_any_turn(node: Node) -> None:
    spoilt = await spoilt_update("m1")
    node.publishing = Unavailable("the broker is away")

    with capture_logs(), pytest.raises(Unavailable):
        await node.gets_all(spoilt, await changed("comment", "b", "c2", at_s=1))

    assert node.steps == []


async def test_giving_up_is_said_of_every_part(node: Node) -> None:
    node.does = BROKE_OUTSIDE

    outcome = await node.gets_all(*await burst(2))

    assert outcome == Ack()
    assert [(skip.trigger_id, skip.abandoned) for skip in node.skips] == [("m1", True), ("m2", True)]
    assert await recorded(node, "m1", "m2") == [True, True]


async def test_only_what_has_no_delivery_left_is_given_up_with_a_broken_turn(node: Node) -> None:
    """The others come back: to say that they do not would be wrong."""
    node.does = BROKE

    outcome = await node.gets_all(*await burst(2), spent=("m1",))

    assert outcome == Nak("llm_unavailable")
    assert [skip.trigger_id for skip in node.skips] == ["m1"]


async def test_only_what_has_no_delivery_left_is_given_up_with_a_deferral(node: Node) -> None:
    node.epoch = None

    await node.gets_all(*await burst(2), spent=("m2",))

    assert [skip.trigger_id for skip in node.skips] == ["m2"]


@pytest.mark.parametrize("port", ["holds", "park"])
async def test_mail_that_has_to_wait_is_deferred_unread_and_unworked(port: str) -> None:
    refusing = Refusing("not now")
    node = Node(MemoryBucket(LEDGER, VirtualClock()), **{port: refusing})  # pyright: ignore[reportArgumentType]

    outcome = await node.gets()
    refusing.why = ""
    later = await node.gets()

    assert (outcome, later) == (Defer("not now"), Ack())
    assert node.steps.count("run") == 1


async def test_a_turn_whose_budget_ran_out_is_parked_and_never_counted_as_a_failure() -> None:
    park = Refusing()
    node = Node(MemoryBucket(LEDGER, VirtualClock()), does=PENNILESS, park=park)

    async def runs_out() -> TurnOutcome:
        await asyncio.sleep(0)
        park.why = "company, this day: full"
        return PENNILESS

    node.does = runs_out

    assert await node.gets() == Defer("company, this day: full")
    assert (node.steps, node.skips) == (["run"], [])


async def test_a_budget_that_has_room_again_by_then_defers_all_the_same() -> None:
    node = Node(MemoryBucket(LEDGER, VirtualClock()), does=PENNILESS, park=Refusing())

    assert await node.gets() == Defer(PENNILESS.error)


async def test_a_turn_that_acted_before_its_budget_ran_out_is_recorded(node: Node) -> None:
    node.does = replace(PENNILESS, reached_outside=True)

    assert await node.gets() == Ack()
    assert await recorded(node, "e1") == [True]


async def test_whoever_waits_for_a_slot_when_the_node_drains_gives_its_delivery_back(node: Node) -> None:
    await node.gate.enter()
    waiting = asyncio.create_task(node.gets())
    await asyncio.sleep(60)

    node.gate.close()

    assert await waiting == Defer("this node is draining")
    assert await node.gets() == Defer("this node is draining")
    assert node.steps == []


async def test_a_slot_goes_to_whoever_waits_longest_and_past_whoever_left(node: Node) -> None:
    await node.gate.enter()
    left, first, second = (asyncio.create_task(node.gate.enter()) for _ in range(3))
    await asyncio.sleep(1)
    left.cancel()
    await asyncio.sleep(1)

    node.gate.leave()
    await asyncio.sleep(1)

    assert (first.done(), second.done()) == (True, False)
    second.cancel()


async def test_whoever_is_cancelled_with_the_slot_just_got_passes_it_on(node: Node) -> None:
    await node.gate.enter()
    first = asyncio.create_task(node.gate.enter())
    await asyncio.sleep(1)

    node.gate.leave()
    first.cancel()
    await asyncio.sleep(1)

    assert await node.gate.enter()


async def test_a_finished_turn_records_all_whatever_it_decided(node: Node) -> None:
    node.does = TurnOutcome(turn_id=TurnId("t"), decision=Decision.SKIPPED, finished=True)

    await node.gets_all(*await burst(2))

    assert await recorded(node, "m1", "m2") == [True, True]
