"""What an attached subscription comes through: a broker that is killed, a port that flaps, a link gone deaf."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack

import pytest

from crewlet import topics
from crewlet.backends.nats import EmbeddedBroker
from crewlet.base.errors import Unavailable
from crewlet.events import Event
from crewlet.queue import Subscription
from crewlet.testing import wait_until
from crewlet.testing.brokers import running_broker
from crewlet.testing.contracts.queue_handlers import Busy, Recorder
from crewlet.testing.links import proxied
from tests.broker.queue.rig import INBOX, Company, Node, event, seats

pytestmark = pytest.mark.slow

SEATS = seats(20)
PROBE_S = 10.0
HALF_OPEN_S = [1.0, 6.0, *([120.0] if os.environ.get("CREWLET_LONG_OUTAGES") else [])]
"""How long a link forwards nothing; `make chaos` adds two minutes."""


async def attached_to_all(node: Node) -> Recorder:
    handler = Recorder()
    await asyncio.gather(*(node.queue.subscribe(mailbox, handler) for mailbox in SEATS))
    return handler


async def probe(node: Node, handler: Recorder, name: str) -> None:
    """Every attachment works one message of its own within the time that is promised."""

    async def send(mailbox: Subscription) -> None:
        await node.queue.publish(mailbox.topic, event(f"{name}-{mailbox.group}"))

    async with asyncio.timeout(PROBE_S):
        await asyncio.gather(*(send(mailbox) for mailbox in SEATS))
        wanted = {f"{name}-{mailbox.group}" for mailbox in SEATS}
        await wait_until(lambda: wanted <= {*handler.ids}, what="every probe worked", timeout_s=PROBE_S)


def kill(broker: EmbeddedBroker) -> None:
    os.kill(broker.pid, signal.SIGKILL)


async def back(node: Node) -> None:
    await wait_until(lambda: node.wire.connected, what="the link")


async def test_every_attachment_works_after_the_broker_was_killed(company: Company) -> None:
    node = await company.node()
    handler = await attached_to_all(node)
    await probe(node, handler, "before")

    kill(company.broker)
    await wait_until(lambda: not node.wire.connected, what="the drop")
    await back(node)

    await probe(node, handler, "after")


async def test_every_attachment_works_after_a_broker_in_memory_lost_everything() -> None:
    async with running_broker(in_memory=True) as broker, AsyncExitStack() as stack:
        node = await Company(broker, stack).node()
        handler = await attached_to_all(node)
        await probe(node, handler, "before")

        kill(broker)
        await wait_until(lambda: not node.wire.connected, what="the drop")
        await back(node)

        async def mailboxes_again() -> bool:
            # The stream itself has to be made again first.
            if await node.api.stream_info(topics.STREAM_AGENT) is None:
                return False
            return len(await node.api.consumer_names(topics.STREAM_AGENT)) == len(SEATS)

        async with asyncio.timeout(PROBE_S):
            await wait_until(mailboxes_again, what="every mailbox made again")
            await probe(node, handler, "after")


async def test_every_attachment_works_after_ten_flaps_in_three_seconds(company: Company) -> None:
    async with proxied(int(company.broker.url.rsplit(":", 1)[1])) as proxy:
        node = await company.node(url=proxy.url)
        handler = await attached_to_all(node)
        tasks = node.queue.task_count
        loop = asyncio.get_running_loop()
        for flap in range(10):
            due = loop.time() + 0.3
            proxy.drop()
            await wait_until(lambda due=due: loop.time() > due, what="the next flap")
            if flap % 3 == 0 and node.wire.connected:
                await node.queue.publish(SEATS[flap].topic, event(f"during-{flap}"))
        await back(node)

        await probe(node, handler, "after")

        await wait_until(lambda: node.queue.task_count <= tasks, what="no task left over")
        await node.queue.close()
        watcher = await company.node("watcher")
        assert all(info.num_waiting <= 1 for info in await watcher.api.consumer_infos(topics.STREAM_AGENT))


async def test_every_attachment_works_after_a_link_went_deaf(company: Company) -> None:
    async with proxied(int(company.broker.url.rsplit(":", 1)[1])) as proxy:
        node, outside = await company.node(url=proxy.url), await company.node("outside")
        handler = await attached_to_all(node)

        proxy.freeze()
        await wait_until(lambda: not node.wire.connected, what="the deaf link noticed", timeout_s=20.0)
        proxy.drop()
        proxy.thaw()
        await back(node)

        await probe(outside, handler, "after")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("deaf_s", HALF_OPEN_S)
async def test_every_attachment_works_after_a_link_was_half_open_for_a_while(company: Company, deaf_s: float) -> None:
    """Nothing is refused and nothing is closed: whoever waits for an answer waits, and what is dialled hangs too."""
    async with proxied(int(company.broker.url.rsplit(":", 1)[1])) as proxy:
        node, outside = await company.node(url=proxy.url), await company.node("outside")
        handler = await attached_to_all(node)
        tasks = node.queue.task_count
        loop = asyncio.get_running_loop()

        proxy.freeze()
        over = loop.time() + deaf_s
        await wait_until(lambda: loop.time() > over, what="the end of the outage", timeout_s=deaf_s + 5)
        proxy.thaw()

        await probe(outside, handler, "after")
        await wait_until(lambda: node.queue.task_count <= tasks, what="no task left over")


async def test_no_mail_published_during_flaps_is_lost(company: Company) -> None:
    async with proxied(int(company.broker.url.rsplit(":", 1)[1])) as proxy:
        node, sender = await company.node(url=proxy.url), await company.node("sender")
        handler = Recorder()
        await node.queue.subscribe(INBOX, handler)
        loop = asyncio.get_running_loop()
        for number in range(60):
            await sender.queue.publish(INBOX.topic, event(f"m{number}"))
            if number % 6 == 5:
                proxy.drop()
                due = loop.time() + 0.1
                await wait_until(lambda due=due: loop.time() > due, what="the next flap")

        async def worked() -> bool:
            # What was on a link when it broke is noticed by the attachment and released by the seat's holder.
            if node.stranded and node.wire.connected:
                node.stranded.clear()
                try:
                    await node.queue.release_held(INBOX)
                except Unavailable:
                    node.stranded.append(INBOX)
            return await sender.stored() == 0

        await wait_until(worked, what="all mail worked", timeout_s=20.0)
        assert {*handler.ids} == {f"m{number}" for number in range(60)}


async def test_a_feed_goes_on_after_the_broker_was_killed(company: Company) -> None:
    node = await company.node()
    seen: list[str] = []

    def viewer(topic: str, event: Event) -> None:
        seen.append(event.id)

    await node.queue.subscribe_stream("crewlet.events.>", viewer)
    await node.queue.publish(topics.event_topic("probe"), event("before"))
    await wait_until(lambda: seen == ["before"], what="the first event")

    kill(company.broker)
    await wait_until(lambda: not node.wire.connected, what="the drop")
    await back(node)
    await node.queue.publish(topics.event_topic("probe"), event("after"))

    await wait_until(lambda: seen == ["before", "after"], what="the event after the restart")


async def test_a_publish_waits_out_a_broker_restart_and_is_stored_once(company: Company) -> None:
    node = await company.node()
    handler = Recorder()
    await node.queue.subscribe(INBOX, handler)

    kill(company.broker)
    await wait_until(lambda: not node.wire.connected, what="the drop")
    await node.queue.publish(INBOX.topic, event("m1"))
    await node.queue.publish(INBOX.topic, event("m2"))

    await handler.handled(2)
    assert handler.ids == ["m1", "m2"]


async def test_an_ack_waits_out_a_lost_link(company: Company) -> None:
    async with proxied(int(company.broker.url.rsplit(":", 1)[1])) as proxy:
        node, watcher = await company.node(url=proxy.url), await company.node("watcher")
        busy = Busy()
        await node.queue.subscribe(INBOX, busy)
        await node.queue.publish(INBOX.topic, event("m1"))
        await busy.entered.wait()

        proxy.refuse = True
        proxy.drop()
        await wait_until(lambda: not node.wire.connected, what="the drop")
        busy.release.set()
        await wait_until(lambda: busy.finished == 1, what="the handler's end")
        proxy.refuse = False
        await node.queue.wait_idle(INBOX)

        assert await watcher.stored() == 0


async def test_an_ack_that_a_killed_broker_has_forgotten_does_not_keep_the_mailbox_waiting(company: Company) -> None:
    node = await company.node()
    busy, handler = Busy(), Recorder()
    await node.queue.subscribe(INBOX, busy)
    await node.queue.publish(INBOX.topic, event("m1"))
    await busy.entered.wait()

    kill(company.broker)
    await wait_until(lambda: not node.wire.connected, what="the drop")
    busy.release.set()
    async with asyncio.timeout(PROBE_S):
        await node.queue.wait_idle(INBOX)
    await node.queue.detach(INBOX)
    await node.queue.subscribe(INBOX, handler)
    await node.queue.publish(INBOX.topic, event("m2"))

    # Whether the killed broker kept its note of the delivery is chance: m1 may come again, and the ledger drops it.
    await wait_until(lambda: "m2" in handler.ids, what="the next message")
