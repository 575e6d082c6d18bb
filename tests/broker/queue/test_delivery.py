"""What a handler's outcome does to its message, and in which order mail is served."""

from __future__ import annotations

import asyncio

import pytest

from crewlet import topics
from crewlet.queue import Ack, Defer, Delivery, Nak, Outcome, QueueConfig, Subscription
from crewlet.testing import wait_until
from tests.broker.queue.rig import INBOX, Busy, Company, Node, Recorder, event

pytestmark = pytest.mark.slow


async def drained(node: Node) -> None:
    async def empty() -> bool:
        return await node.stored() == 0

    await wait_until(empty, what="an empty mailbox")


@pytest.mark.spec("E-032")
async def test_an_acknowledged_message_is_gone_and_silence_acknowledges(node: Node) -> None:
    handled: list[str] = []

    async def says_nothing(delivery: Delivery) -> Outcome:
        handled.append(delivery.event.id)
        return None  # type: ignore[return-value] # pyright: ignore[reportReturnType]

    await node.queue.subscribe(INBOX, says_nothing)
    await node.queue.publish(INBOX.topic, event("m1"))

    await drained(node)
    assert handled == ["m1"]


@pytest.mark.spec("E-026")
async def test_a_second_message_is_not_fetched_while_the_first_is_worked(node: Node) -> None:
    busy = Busy()
    await node.queue.subscribe(INBOX, busy)
    for number in range(3):
        await node.queue.publish(INBOX.topic, event(f"m{number}"))

    await busy.entered.wait()

    assert await node.held() == 1
    busy.release.set()
    await drained(node)
    assert busy.finished == 3


@pytest.mark.spec("E-034")
async def test_a_failure_comes_back_behind_the_mail_that_was_waiting(node: Node) -> None:
    handler = Recorder(Nak("the provider is down"))
    await node.queue.ensure_subscription(INBOX)
    await node.queue.publish(INBOX.topic, event("m1"))
    await node.queue.publish(INBOX.topic, event("m2"))

    await node.queue.subscribe(INBOX, handler)

    await handler.handled(3)
    assert handler.ids == ["m1", "m2", "m1"]


@pytest.mark.spec("E-033")
async def test_the_pause_after_a_failure_doubles_up_to_its_bound(company: Company) -> None:
    paced = QueueConfig(max_deliver=5, nak_backoff_first_s=0.2, nak_backoff_max_s=0.8)
    node = await company.node(config=paced)
    handler = Recorder(*[Nak()] * 4)
    await node.queue.subscribe(INBOX, handler)
    await node.queue.publish(INBOX.topic, event("m1"))

    await handler.handled(5)

    gaps = [later - sooner for sooner, later in zip(handler.started_at, handler.started_at[1:], strict=False)]
    for gap, expected in zip(gaps, [0.2, 0.4, 0.8, 0.8], strict=True):
        assert expected * 0.9 <= gap <= expected + 0.19


async def test_an_exception_is_a_failure(node: Node) -> None:
    handler = Recorder(RuntimeError("no such tool"))
    await node.queue.subscribe(INBOX, handler)
    await node.queue.publish(INBOX.topic, event("m1"))

    await handler.handled(2)

    assert handler.ids == ["m1", "m1"]


async def test_a_cancellation_inside_the_handler_fails_the_message_and_not_the_attachment(node: Node) -> None:
    attempts: list[str] = []

    async def cancelled_inside(delivery: Delivery) -> Outcome:
        attempts.append(delivery.event.id)
        if len(attempts) == 1:
            raise asyncio.CancelledError
        return Ack()

    await node.queue.subscribe(INBOX, cancelled_inside)
    await node.queue.publish(INBOX.topic, event("m1"))

    await drained(node)
    assert attempts == ["m1", "m1"]


@pytest.mark.spec("E-036", "E-037")
async def test_a_deferral_goes_to_the_successor_at_the_head_and_stops_this_attachment(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    leaver, successor = Recorder(Defer("the lease moved")), Recorder()
    await first.queue.ensure_subscription(INBOX)
    await first.queue.publish(INBOX.topic, event("m1"))
    await first.queue.publish(INBOX.topic, event("m2"))
    await first.queue.subscribe(INBOX, leaver)
    await leaver.handled(1)
    await first.queue.wait_idle(INBOX)

    stream = await first.api.stream_info(topics.STREAM_AGENT)
    await second.queue.subscribe(INBOX, successor)
    await successor.handled(2)

    assert successor.ids == ["m1", "m2"]
    assert successor.headrooms == [2, 3]
    assert leaver.ids == ["m1"]
    assert stream is not None
    assert stream.state.last_seq == 2


async def test_a_deferral_is_handed_over_at_once(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    busy, successor = Busy(Defer("the lease moved")), Recorder()
    await first.queue.subscribe(INBOX, busy)
    await first.queue.publish(INBOX.topic, event("m1"))
    await busy.entered.wait()
    await second.queue.subscribe(INBOX, successor)

    released_at = asyncio.get_running_loop().time()
    busy.release.set()
    await successor.handled(1)

    assert successor.started_at[0] - released_at < 0.1


async def test_a_handler_that_outlasts_the_ack_clock_keeps_its_message(company: Company) -> None:
    node = await company.node(config=QueueConfig(ack_wait_s=0.4, max_deliver=4))
    second = await company.node("second", config=QueueConfig(ack_wait_s=0.4, max_deliver=4))
    busy, other = Busy(), Recorder()
    await node.queue.subscribe(INBOX, busy)
    await node.queue.publish(INBOX.topic, event("m1"))
    await busy.entered.wait()
    await second.queue.subscribe(INBOX, other)

    # A second message proves that the other attachment was served while three ack clocks passed.
    loop = asyncio.get_running_loop()
    loop.call_later(1.2, lambda: None)
    until = loop.time() + 1.2
    await wait_until(lambda: loop.time() > until, what="three ack clocks to pass")
    await node.queue.publish(INBOX.topic, event("m2"))
    await other.handled(1)

    assert other.ids == ["m2"]
    busy.release.set()
    await drained(node)


async def test_one_event_published_twice_is_stored_once_on_each_of_its_topics(node: Node) -> None:
    elsewhere = Subscription(topics.agent_inbox("bob"), topics.inbox_group("bob"))
    await node.queue.ensure_subscription(INBOX)
    await node.queue.ensure_subscription(elsewhere)

    for _ in range(2):
        await node.queue.publish(INBOX.topic, event("m1"))
        await node.queue.publish(elsewhere.topic, event("m1"))

    assert await node.stored() == 2


async def test_two_attachments_of_one_group_share_the_mail(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    busy, other = Busy(), Recorder()
    await first.queue.subscribe(INBOX, busy)
    await first.queue.publish(INBOX.topic, event("m1"))
    await busy.entered.wait()
    await second.queue.subscribe(INBOX, other)

    await first.queue.publish(INBOX.topic, event("m2"))

    await other.handled(1)
    busy.release.set()
    await drained(first)
    assert (busy.finished, other.ids) == (1, ["m2"])


@pytest.mark.spec("E-043")
async def test_a_handler_learns_how_many_deliveries_are_left_across_a_hand_over(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    leaver, successor = Recorder(Nak(), Defer("moved")), Recorder(Nak(), Ack())
    await first.queue.subscribe(INBOX, leaver)
    await first.queue.publish(INBOX.topic, event("m1"))
    await leaver.handled(2)

    await second.queue.subscribe(INBOX, successor)
    await successor.handled(2)

    assert leaver.headrooms + successor.headrooms == [3, 2, 1, 0]
