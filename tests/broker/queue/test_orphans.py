"""Messages whose last holder died: buried once, by whichever node hears of it first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crewlet import topics
from crewlet.backends.nats.jetstream_types import ConsumerConfig, ns
from crewlet.backends.nats.queue_dead_letters import GROUP_HEADER, TOPIC_HEADER
from crewlet.queue import Nak, QueueConfig, Subscription
from crewlet.testing import wait_until
from crewlet.testing.contracts.queue_handlers import Busy, Recorder
from tests.broker.queue.batch_rig import lapse
from tests.broker.queue.rig import INBOX, Company, Node, die_at_work, event

pytestmark = pytest.mark.slow

ONCE = QueueConfig(ack_wait_s=0.5, max_deliver=1)


async def letters(node: Node) -> int:
    return await node.stored(topics.STREAM_DLQ)


async def buried(node: Node) -> None:
    async def gone() -> bool:
        return await node.stored() == 0 and await letters(node) == 1

    await wait_until(gone, what="one dead letter and an empty mailbox")


async def advisories_done(node: Node) -> None:
    async def done() -> bool:
        return await node.stored(topics.STREAM_ADVISORIES) == 0

    await wait_until(done, what="no advisory that waits")


@pytest.mark.spec("E-039", "E-040")
async def test_a_process_killed_in_the_last_delivery_leaves_one_dead_letter_and_no_orphan(company: Company) -> None:
    doomed, survivor = await company.node("doomed", config=ONCE), await company.node("survivor", config=ONCE)

    await die_at_work(doomed)
    await buried(survivor)

    letter = await survivor.api.last_message(topics.STREAM_DLQ, topics.dead_letter(INBOX.topic, INBOX.group))
    assert letter is not None
    assert (letter.headers[TOPIC_HEADER], letter.headers[GROUP_HEADER]) == (INBOX.topic, INBOX.group)
    await advisories_done(survivor)


async def test_the_only_node_finds_what_it_lost_when_it_comes_back(company: Company) -> None:
    await die_at_work(await company.node("one", config=ONCE))
    await lapse(2 * ONCE.ack_wait_s)

    await buried(await company.node("one", config=ONCE))


async def test_a_crash_between_copy_and_termination_leaves_one_copy(company: Company) -> None:
    doomed, survivor = await company.node("doomed", config=ONCE), await company.node("survivor", config=ONCE)
    failing = Recorder(Nak("no"))
    mailbox = topics.durable_name(INBOX.topic, INBOX.group)
    # The copy that the doomed holder had made already.
    await survivor.api.publish(
        topics.dead_letter(INBOX.topic, INBOX.group), b"{}", message_id=f"{topics.STREAM_AGENT}.1.{mailbox}"
    )

    await die_at_work(doomed)
    await buried(survivor)

    await advisories_done(survivor)
    assert await letters(survivor) == 1
    assert failing.deliveries == []


async def test_another_group_keeps_its_message(company: Company) -> None:
    doomed, survivor = await company.node("doomed", config=ONCE), await company.node("survivor", config=ONCE)
    other, handler = Subscription(INBOX.topic, "auditors"), Recorder()
    await survivor.queue.ensure_subscription(other)
    await die_at_work(doomed)

    async def one_letter() -> bool:
        return await letters(survivor) == 1

    await wait_until(one_letter, what="the dead letter of the other group")
    await survivor.queue.subscribe(other, handler)
    await handler.handled(1)

    await buried(survivor)


async def test_a_message_that_was_worked_late_is_not_buried(company: Company) -> None:
    node = await company.node(config=replace(ONCE, max_deliver=2))
    busy = Busy()
    await node.queue.subscribe(INBOX, busy)
    await node.queue.publish(INBOX.topic, event("m1"))
    await busy.entered.wait()

    await lapse(2 * ONCE.ack_wait_s)
    busy.release.set()

    async def worked() -> bool:
        return await node.stored() == 0

    await wait_until(worked, what="an empty mailbox")
    assert await letters(node) == 0


async def test_consumers_that_are_not_ours_are_left_alone(node: Node) -> None:
    stranger = ConsumerConfig(
        durable_name="stranger",
        ack_policy="explicit",
        max_deliver=1,
        ack_wait=ns(0.2),
        filter_subject=INBOX.topic,
        deliver_subject=node.wire.new_inbox(),
    )
    await node.wire.subscribe(stranger.deliver_subject, lambda _message: None)
    await node.api.consumer_create(topics.STREAM_AGENT, stranger)
    await node.queue.publish(INBOX.topic, event("m1"))

    async def heard() -> bool:
        info = await node.api.stream_info(topics.STREAM_ADVISORIES)
        return info is not None and info.state.last_seq == 1 and info.state.messages == 0

    await wait_until(heard, what="the advisory, heard and done with")
    assert await letters(node) == 0


async def test_a_node_takes_part_in_one_group_of_the_fleet(company: Company) -> None:
    first, _ = await company.node("first"), await company.node("second")

    names = await first.api.consumer_names(topics.STREAM_ADVISORIES)

    assert names == [topics.durable_name(topics.ORPHAN_ADVISORIES, topics.ORPHANS_GROUP)]
