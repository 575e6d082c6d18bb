"""A mailbox is a fact about the company: made before it is needed, keeping mail for whoever comes, ended on purpose."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import msgspec
import pytest

from crewlet import topics
from crewlet.backends.nats.jetstream_types import ConsumerConfig, ns
from crewlet.base import limits
from crewlet.base.errors import StartRefused
from crewlet.queue import QueueConfig, Subscription
from crewlet.testing import wait_until
from crewlet.testing.brokers import running_broker
from crewlet.testing.contracts.queue_handlers import Busy, Recorder
from tests.broker.queue.rig import INBOX, Company, Node, die_at_work, event, place, seats

pytestmark = pytest.mark.slow


@pytest.mark.spec("E-020", "S-138")
async def test_mail_that_no_mailbox_covers_is_dropped_in_silence(node: Node) -> None:
    handler = Recorder()
    await node.queue.publish(INBOX.topic, event("lost"))

    await node.queue.subscribe(INBOX, handler)
    await node.queue.publish(INBOX.topic, event("kept"))

    await handler.handled(1)
    assert handler.ids == ["kept"]


@pytest.mark.spec("E-027", "E-054", "S-132")
async def test_mail_waits_for_whoever_attaches_later(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    handler = Recorder()
    await first.queue.ensure_subscription(INBOX)
    await first.queue.publish(INBOX.topic, event("m1"))

    await second.queue.subscribe(INBOX, handler)

    await handler.handled(1)
    assert handler.ids == ["m1"]


@pytest.mark.spec("S-138")
async def test_each_group_of_a_topic_gets_its_own_copy(node: Node) -> None:
    one, other = Recorder(), Recorder()
    await node.queue.subscribe(Subscription(INBOX.topic, "one"), one)
    await node.queue.subscribe(Subscription(INBOX.topic, "other"), other)

    await node.queue.publish(INBOX.topic, event("m1"))

    await asyncio.gather(one.handled(1), other.handled(1))


@pytest.mark.spec("S-134")
async def test_making_a_mailbox_again_changes_nothing_and_takes_no_mail(company: Company) -> None:
    holder, passer_by = await company.node("holder"), await company.node("passer-by")
    handler = Recorder()
    await holder.queue.subscribe(INBOX, handler)

    await asyncio.gather(*(passer_by.queue.ensure_subscription(INBOX) for _ in range(20)))
    for number in range(5):
        await holder.queue.publish(INBOX.topic, event(f"m{number}"))

    await handler.handled(5)
    assert len(await holder.api.consumer_names(topics.STREAM_AGENT)) == 1


@pytest.mark.spec("E-027", "E-038", "E-040", "S-139")
async def test_a_mailbox_as_shipped(company: Company) -> None:
    node = await company.node(config=QueueConfig())
    await node.queue.ensure_subscription(INBOX)

    info = await node.api.consumer_info(*place(INBOX))

    assert info is not None
    assert (info.config.deliver_policy, info.config.ack_policy) == ("all", "explicit")
    assert (info.config.ack_wait, info.config.max_deliver) == (ns(1800), 25)
    assert info.config.inactive_threshold == 0
    assert (info.config.metadata["topic"], info.config.metadata["group"]) == (INBOX.topic, INBOX.group)


async def test_a_mailbox_that_differs_is_repaired_before_anybody_attaches(node: Node) -> None:
    stream, name = place(INBOX)
    await node.queue.ensure_subscription(INBOX)
    info = await node.api.consumer_info(stream, name)
    assert info is not None
    # What a process leaves behind that died while it released held deliveries.
    await node.api.consumer_create(stream, msgspec.structs.replace(info.config, ack_wait=ns(0.001)))

    await node.queue.ensure_subscription(INBOX)

    repaired = await node.api.consumer_info(stream, name)
    assert repaired is not None
    assert repaired.config.ack_wait == info.config.ack_wait


async def test_a_mailbox_that_cannot_be_repaired_is_refused_by_name(node: Node) -> None:
    stream, name = place(INBOX)
    stranger = ConsumerConfig(durable_name=name, ack_policy="none", filter_subject=INBOX.topic)
    await node.api.consumer_create(stream, stranger)

    with pytest.raises(StartRefused, match=name):
        await node.queue.ensure_subscription(INBOX)


@pytest.mark.spec("E-093", "E-095")
async def test_a_mailbox_is_destroyed_with_its_mail_from_a_node_that_is_not_attached(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    await first.queue.ensure_subscription(INBOX)
    await first.queue.publish(INBOX.topic, event("m1"))

    await second.queue.delete_subscription(INBOX)

    assert await first.stored() == 0
    assert await first.api.consumer_info(*place(INBOX)) is None
    await second.queue.delete_subscription(INBOX)


async def test_mail_that_outlived_its_deliveries_goes_with_its_mailbox(company: Company) -> None:
    once = QueueConfig(ack_wait_s=20.0, max_deliver=1)
    first, second = await company.node("first", config=once), await company.node("second", config=once)
    # Nobody hears that its deliveries are used up.
    await second.api.stream_delete(topics.STREAM_ADVISORIES)
    await die_at_work(first)
    await second.queue.release_held(INBOX)
    assert await second.stored() == 1

    await second.queue.delete_subscription(INBOX)

    assert await second.stored() == 0


async def test_deleting_a_mailbox_ends_the_attachments_that_wait_on_it(company: Company) -> None:
    holder, duty = await company.node("holder"), await company.node("duty")
    idle_tasks = holder.queue.task_count
    await holder.queue.subscribe(INBOX, Recorder())

    async def asked() -> bool:
        info = await duty.api.consumer_info(*place(INBOX))
        return info is not None and info.num_waiting == 1

    await wait_until(asked, what="a request waiting at the broker")

    await duty.queue.delete_subscription(INBOX)

    await wait_until(lambda: holder.queue.task_count == idle_tasks, what="the attachment's end")
    assert await duty.api.consumer_names(topics.STREAM_AGENT) == []
    await holder.queue.subscribe(INBOX, Recorder())


async def test_a_mailbox_that_was_lost_unseen_is_made_again_and_attached(company: Company) -> None:
    holder, peer = await company.node("holder"), await company.node("peer")
    busy = Busy()
    await holder.queue.subscribe(INBOX, busy)
    await holder.queue.publish(INBOX.topic, event("m1"))
    await busy.entered.wait()

    await peer.api.consumer_delete(*place(INBOX))
    busy.release.set()

    async def attached_again() -> bool:
        info = await peer.api.consumer_info(*place(INBOX))
        return info is not None and info.num_waiting == 1

    await wait_until(attached_again, what="the mailbox, attached again")


async def test_five_hundred_attached_mailboxes_each_work_their_mail(node: Node) -> None:
    handler = Recorder()
    mailboxes = seats(500)
    await asyncio.gather(*(node.queue.subscribe(mailbox, handler) for mailbox in mailboxes))

    for number, mailbox in enumerate(mailboxes):
        await node.queue.publish(mailbox.topic, event(f"m{number}"))

    await handler.handled(500)
    assert {delivery.subscription for delivery in handler.deliveries} == set(mailboxes)


async def test_a_stream_holds_more_than_a_thousand_mailboxes() -> None:
    async with running_broker(in_memory=True) as broker, AsyncExitStack() as stack:
        node = await Company(broker, stack).node()
        mailboxes = seats(1200)
        await asyncio.gather(*(node.queue.ensure_subscription(mailbox) for mailbox in mailboxes))
        handler = Recorder()

        await node.queue.publish(mailboxes[-1].topic, event("m1"))
        await node.queue.subscribe(mailboxes[-1], handler)

        await handler.handled(1)
        assert len(await node.api.consumer_names(topics.STREAM_AGENT)) == 1200


async def test_a_repair_keeps_what_an_operator_set_beside_it(node: Node) -> None:
    await node.queue.ensure_subscription(INBOX)
    stream, name = place(INBOX)
    set_by_hand = {"sample_freq": "50", "metadata": {"owner": "somebody"}, "max_ack_pending": 5}
    await node.api.consumer_change(stream, name, set_by_hand)
    pause = b'{"pause_until": "2030-01-01T00:00:00Z"}'
    await node.wire.request(f"$JS.API.CONSUMER.PAUSE.{stream}.{name}", pause, timeout_s=5)

    await node.queue.ensure_subscription(INBOX)

    body = (await node.wire.request(f"$JS.API.CONSUMER.INFO.{stream}.{name}", timeout_s=5)).payload
    config = msgspec.json.decode(body)["config"]
    assert config["max_ack_pending"] == limits.ACK_PENDING_MAX
    assert config["sample_freq"] == "50"
    assert config["pause_until"] == "2030-01-01T00:00:00Z"
    assert config["metadata"]["owner"] == "somebody"
