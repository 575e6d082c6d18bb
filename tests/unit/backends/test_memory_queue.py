"""What is the twin's own of the queue: failures without a timer, bounds, and a broker that can be looked into."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator

import pytest

from crewlet import topics
from crewlet.base import limits
from crewlet.base.errors import MailboxFull
from crewlet.events import encode
from crewlet.queue import Ack, Batch, BatchOptions, Defer, Nak, Outcome, QueueConfig, Subscription
from crewlet.testing import run_virtual
from tests.unit.backends.memory_queue_rig import (
    CONFIG,
    INBOX,
    MOMENT_S,
    Company,
    Worker,
    event,
    moment,
    publish,
    running_company,
)

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def company() -> AsyncIterator[Company]:
    async with running_company() as company:
        yield company


@pytest.mark.spec("E-151")
async def test_an_event_of_a_client_without_a_node_names_none(company: Company) -> None:
    client, worker = company.client(node=""), Worker()
    await client.subscribe(INBOX, worker)

    await publish(client, "m1")
    await moment()

    assert "node" not in json.loads(encode(worker.deliveries[0].event))


@pytest.mark.spec("E-035")
async def test_a_failure_goes_to_the_end_of_the_mailbox_and_costs_no_time(company: Company) -> None:
    client, worker = company.client(), Worker(Nak(), Nak(), Nak())
    await client.ensure_subscription(INBOX)
    await publish(client, "m1", "m2")
    started_s = asyncio.get_running_loop().time()

    await client.subscribe(INBOX, worker)
    await moment()

    assert worker.ids == ["m1", "m2", "m1", "m2", "m1"]
    assert asyncio.get_running_loop().time() - started_s == pytest.approx(MOMENT_S)


async def test_a_failure_is_served_before_what_is_published_after_it(company: Company) -> None:
    client, worker = company.client(), Worker(Nak(), stays=True)
    await client.subscribe(INBOX, worker)
    await publish(client, "m1")
    await moment()
    await client.quiesce(INBOX)
    worker.release.set()
    await client.wait_idle(INBOX)
    await publish(client, "m2")

    await client.unquiesce(INBOX)
    await moment()

    assert worker.ids == ["m1", "m1", "m2"]


async def test_poison_ends_among_the_dead_letters_within_the_moment(company: Company) -> None:
    client, worker = company.client(), Worker(*[Nak("no model\nanswers")] * CONFIG.max_deliver)
    await client.subscribe(INBOX, worker)

    await publish(client, "m1")
    await moment()

    (letter,) = company.broker.dead_letters(INBOX)
    assert (letter.topic, letter.group, letter.deliveries) == (INBOX.topic, INBOX.group, CONFIG.max_deliver)
    assert letter.reason == "failed on delivery 4 of 4: no model answers"
    assert letter.event is not None
    assert (letter.event.id, letter.stream, letter.stream_seq) == ("m1", topics.STREAM_AGENT, 1)


@pytest.mark.spec("E-009")
async def test_what_a_stopped_client_left_can_be_looked_at(company: Company) -> None:
    client = company.client("node-a")
    await client.subscribe(INBOX, Worker(stays=True))
    await publish(client, "m1", "m2")
    await moment()

    client.crash()

    retained = [(mail.message.sequence, mail.deliveries, mail.holder) for mail in company.broker.retained(INBOX)]
    assert retained == [(1, 1, "node-a"), (2, 0, None)]
    assert [mail.message.event and mail.message.event.id for mail in company.broker.held(INBOX)] == ["m1"]


async def test_mail_is_shown_in_the_order_in_which_it_will_be_served(company: Company) -> None:
    client, worker = company.client(), Worker(Nak(), Defer("the lease moved"))
    await client.ensure_subscription(INBOX)
    await publish(client, "fails", "deferred", "fresh")
    await client.subscribe(INBOX, worker)
    await moment()

    shown = [mail.message.event and mail.message.event.id for mail in company.broker.retained(INBOX)]

    await client.unquiesce(INBOX)
    await moment()
    assert shown == ["deferred", "fresh", "fails"]
    assert worker.ids[2:] == shown


async def test_a_log_shows_what_a_stream_keeps(company: Company) -> None:
    client = company.client()

    await publish(client, "e1", topic=topics.event_topic("turn_started"))
    await publish(client, "nobody", topic=topics.agent_inbox("nobody"))

    assert [kept.topic for kept in company.broker.log(topics.STREAM_EVENTS)] == [topics.event_topic("turn_started")]
    assert company.broker.log(topics.STREAM_AGENT) == []


@pytest.mark.spec("E-023")
async def test_what_is_older_than_its_streams_age_is_gone_for_mailboxes_too(company: Company) -> None:
    client, worker = company.client(), Worker()
    nudges = Subscription(topics.CONFIG_REVISION_ACTIVATED, "watchers")
    await client.ensure_subscription(nudges)
    await publish(client, "old", topic=nudges.topic)
    await asyncio.sleep(limits.CONFIG_RETENTION_S - 1.0)
    await publish(client, "young", topic=nudges.topic)
    await asyncio.sleep(1.0)

    await client.subscribe(nudges, worker)
    await moment()

    assert worker.ids == ["young"]
    assert len(company.broker.log(topics.STREAM_CONFIG)) == 1


async def test_a_repeat_is_one_message_inside_the_duplicate_window_and_two_outside(company: Company) -> None:
    client = company.client()
    await client.ensure_subscription(INBOX)
    await publish(client, "m1")
    await asyncio.sleep(limits.DUPLICATE_WINDOW_S - 1.0)
    await publish(client, "m1")
    inside = len(company.broker.retained(INBOX))

    await asyncio.sleep(2.0)
    await publish(client, "m1")

    assert (inside, len(company.broker.retained(INBOX))) == (1, 2)


async def test_a_full_mailbox_stream_refuses_by_name_and_keeps_what_waits(company: Company) -> None:
    client = company.client(config=QueueConfig(mailbox_max_bytes=1000))
    await client.ensure_subscription(INBOX)
    await client.publish(INBOX.topic, event("m1", text="x" * 500))

    with pytest.raises(MailboxFull, match=INBOX.topic):
        await client.publish(INBOX.topic, event("m2", text="x" * 500))

    assert len(company.broker.retained(INBOX)) == 1
    await client.delete_subscription(INBOX)
    await client.ensure_subscription(INBOX)
    await client.publish(INBOX.topic, event("m2", text="x" * 500))
    assert len(company.broker.retained(INBOX)) == 1


async def test_a_full_log_gives_up_its_oldest(company: Company) -> None:
    client, topic = company.client(config=QueueConfig(event_max_bytes=1000)), topics.event_topic("probe")

    for number in range(3):
        await client.publish(topic, event(f"e{number}", text="x" * 300))

    kept = [message.event and message.event.id for message in company.broker.log(topics.STREAM_EVENTS)]
    assert kept == ["e1", "e2"]


async def test_where_the_dead_letters_are_full_poison_stays_and_is_tried_again_later(company: Company) -> None:
    client = company.client(config=QueueConfig(max_deliver=1, ack_wait_s=30.0, dead_letter_max_bytes=10))
    await client.subscribe(INBOX, Worker(Nak()))
    await publish(client, "m1")
    await moment()
    stayed = len(company.broker.held(INBOX))

    company.client(config=QueueConfig(max_deliver=1, ack_wait_s=30.0))
    await asyncio.sleep(30.0)

    assert stayed == 1
    assert (len(company.broker.retained(INBOX)), len(company.broker.dead_letters(INBOX))) == (0, 1)


async def test_no_more_is_held_of_a_mailbox_than_the_real_broker_allows(company: Company) -> None:
    haul = BatchOptions(max_events=limits.MAX_BATCH_EVENTS)
    clients = [company.client(f"node-{n}") for n in range(limits.ACK_PENDING_MAX // haul.max_events + 1)]
    await clients[0].ensure_subscription(INBOX)
    await publish(clients[0], *(f"m{n}" for n in range(len(clients) * haul.max_events)))

    for client in clients:
        await client.subscribe_batch(INBOX, Worker(stays=True).batch, partition=lambda _: "one", options=lambda: haul)
    await moment()

    assert len(company.broker.held(INBOX)) == limits.ACK_PENDING_MAX


async def test_a_detach_gives_the_rest_of_a_haul_to_the_successor_at_once(company: Company) -> None:
    first, second = company.client("first"), company.client("second")
    busy, heir = Worker(stays=True), Worker()
    await first.ensure_subscription(INBOX)
    await publish(first, "m1", "m2", "m3")
    await first.subscribe_batch(INBOX, busy.batch, partition=lambda found: found.id)
    await second.subscribe(INBOX, heir)
    await moment()

    await first.detach(INBOX)
    await moment()

    assert (busy.ids, heir.ids, heir.headrooms) == (["m1"], ["m2", "m3"], [CONFIG.max_deliver - 2] * 2)
    assert [mail.holder for mail in company.broker.retained(INBOX)] == ["first"]


@pytest.mark.spec("E-198")
async def test_a_feed_is_told_before_the_publish_returns(company: Company) -> None:
    client, told = company.client(), list[str]()
    await client.subscribe_stream("crewlet.events.turn.*", lambda topic, _: told.append(topic))

    await publish(client, "e1", topic=topics.event_topic("turn.started"))
    await publish(client, "e2", topic=topics.event_topic("tool.called"))

    assert told == [topics.event_topic("turn.started")]


def test_two_runs_of_one_program_are_one_run() -> None:
    assert run_virtual(busy_day(seed=7)) == run_virtual(busy_day(seed=7))


async def busy_day(seed: int) -> list[tuple[float, str, str]]:
    """What happened, in order: when, to whom, which message."""
    chance, seen = random.Random(seed), list[tuple[float, str, str]]()
    loop = asyncio.get_running_loop()
    async with running_company() as company:
        for number in range(4):
            client = company.client(f"node-{number}")

            async def work(batch: Batch, node: str = client.node) -> Outcome:
                seen.extend((loop.time(), node, delivery.event.id) for delivery in batch.deliveries)
                await asyncio.sleep(chance.random())
                return chance.choice([Ack(), Nak(), Ack()])

            await client.subscribe_batch(INBOX, work, partition=lambda found: found.id[-1])
        for number in range(200):
            await publish(chance.choice(company.clients), f"m{number}")
            await asyncio.sleep(chance.random() / 4)
    return seen


async def test_many_mailboxes_are_made_in_one_call(company: Company) -> None:
    client = company.client()
    many = [Subscription(topics.agent_inbox(f"seat-{number}"), "agents") for number in range(30)]

    await client.ensure_subscriptions(many)

    assert await client.list_subscriptions("crewlet.agent.>") == sorted(many, key=lambda each: each.topic)
