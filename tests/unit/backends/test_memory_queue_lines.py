"""Clients of the queue's twin that are cut off from their broker, come back, or are killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crewlet import topics
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.queue import Ack, Answer, Delivery, Nak, Outcome, QueueConfig
from tests.unit.backends.memory_queue_rig import (
    CONFIG,
    INBOX,
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


async def test_a_cut_client_is_told_nothing_and_says_so(company: Company) -> None:
    client = company.client()

    client.cut()

    for call in (
        client.publish(INBOX.topic, event("m1")),
        client.ensure_subscription(INBOX),
        client.subscribe(INBOX, Worker()),
        client.delete_subscription(INBOX),
        client.release_held(INBOX),
        client.list_subscriptions(">"),
        client.mailbox(INBOX),
        client.scatter("who", b"", timeout_s=1.0),
    ):
        with pytest.raises(Unavailable):
            await call


async def test_a_cut_client_is_handed_nothing_until_it_is_healed(company: Company) -> None:
    client, worker = company.client(), Worker()
    await client.subscribe(INBOX, worker)

    client.cut()
    await publish(company.client("two"), "m1")
    await moment()
    handed_while_cut = worker.ids
    client.heal()
    await moment()

    assert (handed_while_cut, worker.ids) == ([], ["m1"])
    assert worker.headrooms == [CONFIG.max_deliver - 1]


async def test_an_outcome_reached_while_cut_is_reported_after_the_heal(company: Company) -> None:
    client, worker = company.client(), Worker(stays=True)
    await client.subscribe(INBOX, worker)
    await publish(client, "m1")
    await moment()

    client.cut()
    worker.release.set()
    await moment(1.0)
    held_while_cut = len(company.broker.held(INBOX))
    client.heal()
    await moment()

    assert (held_while_cut, company.broker.retained(INBOX)) == (1, [])


async def test_what_a_cut_client_holds_is_anothers_once_its_clock_has_run_out(company: Company) -> None:
    cut, other = company.client("cut"), company.client("other")
    heir = Worker()
    await cut.subscribe(INBOX, Worker(stays=True))
    await publish(cut, "m1")
    await moment()
    cut.cut()
    await other.subscribe(INBOX, heir)

    await asyncio.sleep(CONFIG.ack_wait_s - 1.0)
    before = heir.ids
    await asyncio.sleep(1.0)

    assert (before, heir.ids, heir.headrooms) == ([], ["m1"], [CONFIG.max_deliver - 2])


async def test_a_client_that_is_healed_in_time_keeps_what_it_holds(company: Company) -> None:
    client, worker = company.client(), Worker(stays=True)
    await client.subscribe(INBOX, worker)
    await publish(client, "m1")
    await moment()

    client.cut()
    await asyncio.sleep(CONFIG.ack_wait_s / 2)
    client.heal()
    await asyncio.sleep(2 * CONFIG.ack_wait_s)

    assert [mail.deliveries for mail in company.broker.held(INBOX)] == [1]


async def test_a_late_failure_takes_nothing_from_who_holds_the_message_now(company: Company) -> None:
    late, other = company.client("late"), company.client("other")
    failing, heir = Worker(Nak(), stays=True), Worker(stays=True)
    await late.subscribe(INBOX, failing)
    await publish(late, "m1")
    await moment()
    late.cut()
    await other.subscribe(INBOX, heir)
    await asyncio.sleep(CONFIG.ack_wait_s)

    failing.release.set()
    late.heal()
    await moment()

    assert heir.ids == ["m1"]
    assert [mail.holder for mail in company.broker.retained(INBOX)] == ["other"]


async def test_an_acknowledgement_counts_although_the_clock_ran_out_before_it(company: Company) -> None:
    late, worker = company.client("late"), Worker(stays=True)
    await late.subscribe(INBOX, worker)
    await publish(late, "m1")
    await moment()
    late.cut()
    await asyncio.sleep(CONFIG.ack_wait_s)
    waiting = [mail.holder for mail in company.broker.retained(INBOX)]

    worker.release.set()
    await moment()
    late.heal()
    await moment()

    assert waiting == [None]
    assert company.broker.retained(INBOX) == []


async def test_an_outcome_that_nobody_hears_for_long_is_left_to_the_ack_clock(company: Company) -> None:
    client, worker = company.client(config=QueueConfig(ack_wait_s=600.0)), Worker(stays=True)
    await client.subscribe(INBOX, worker)
    await publish(client, "m1")
    await moment()
    client.cut()
    worker.release.set()

    await asyncio.sleep(limits.SETTLE_ATTEMPTS_MAX * limits.LINK_WAIT_S + 1.0)
    client.heal()
    await moment()
    after_heal = len(company.broker.held(INBOX))
    await asyncio.sleep(600.0)

    assert (after_heal, worker.ids) == (1, ["m1", "m1"])


async def test_a_feed_is_told_after_the_heal_what_it_missed(company: Company) -> None:
    client, told = company.client(), list[str]()
    await client.subscribe_stream("crewlet.events.>", lambda _, found: told.append(found.id))
    other, topic = company.client("two"), topics.event_topic("probe")
    await publish(other, "e1", topic=topic)

    client.cut()
    await publish(other, "e2", topic=topic)
    told_while_cut = [*told]
    client.heal()

    assert (told_while_cut, told) == (["e1"], ["e1", "e2"])


async def test_who_is_cut_off_is_silent_to_whoever_asks(company: Company) -> None:
    here, there = company.client("here"), company.client("there")

    async def answer(question: bytes) -> bytes:
        return question

    await here.serve("who", answer)
    await there.serve("who", answer)
    there.cut()
    started_s = asyncio.get_running_loop().time()

    answers = await here.scatter("who", b"?", timeout_s=5.0)

    assert answers == [Answer("here", b"?")]
    assert asyncio.get_running_loop().time() - started_s == pytest.approx(5.0)


async def test_an_asker_that_is_cut_before_the_end_does_not_know(company: Company) -> None:
    asker, server = company.client("asker"), company.client("server")

    async def answer(_: bytes) -> bytes:
        asker.cut()
        return b"too late"

    await server.serve("who", answer)

    with pytest.raises(Unavailable):
        await asker.scatter("who", b"?", timeout_s=5.0)


async def test_a_killed_client_does_nothing_more(company: Company) -> None:
    client, other = company.client(), company.client("two")
    worker, told = Worker(stays=True), list[str]()
    await client.subscribe(INBOX, worker)
    await client.subscribe_stream("crewlet.agent.>", lambda _, found: told.append(found.id))
    await publish(client, "m1")
    await moment()

    client.crash()
    worker.release.set()
    await publish(other, "m2")
    await moment()

    assert (worker.ids, told) == (["m1"], ["m1"])
    assert [mail.holder for mail in company.broker.retained(INBOX)] == ["one", None]
    assert client.task_count == 0
    with pytest.raises(Unavailable):
        await publish(client, "m3")


async def test_a_handler_may_kill_its_own_client(company: Company) -> None:
    client = company.client()

    async def die(_: Delivery) -> Outcome:
        client.crash()
        return Ack()

    await client.subscribe(INBOX, die)
    await publish(client, "m1")
    await moment()

    assert len(company.broker.held(INBOX)) == 1


async def test_the_clock_of_a_dead_holder_counts_from_its_last_extension(company: Company) -> None:
    client, heir = company.client(), Worker()
    await client.subscribe(INBOX, Worker(stays=True))
    await publish(client, "m1")
    await asyncio.sleep(CONFIG.ack_wait_s * 1.5)

    client.crash()
    await company.client("two").subscribe(INBOX, heir)
    await asyncio.sleep(CONFIG.ack_wait_s * 0.8)
    before = heir.ids
    await asyncio.sleep(CONFIG.ack_wait_s * 0.1)

    assert (before, heir.ids) == ([], ["m1"])


async def test_a_dead_holders_last_delivery_is_buried_when_its_clock_runs_out(company: Company) -> None:
    client = company.client(config=QueueConfig(max_deliver=1, ack_wait_s=30.0))
    await client.subscribe(INBOX, Worker(stays=True))
    await publish(client, "m1")
    await moment()

    client.crash()
    await asyncio.sleep(30.0)

    (letter,) = company.broker.dead_letters(INBOX)
    assert letter.reason == "never settled on delivery 1 of 1"
    assert company.broker.retained(INBOX) == []
