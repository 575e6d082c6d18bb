"""Live events on a real broker: nobody waits for one, what is lost is told, and a new link carries them on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from crewlet import topics
from crewlet.backends.nats.wire import Wire
from crewlet.base.errors import MailboxFull, PayloadTooLarge
from crewlet.events import Event
from crewlet.testing import wait_until
from crewlet.testing.links import proxied
from tests.broker.queue.rig import INBOX, SCALED, Company, Node, event
from tests.broker.queue.wires import PassedOn

pytestmark = pytest.mark.slow

TOPIC = topics.event_topic("step")


class KeptBack(PassedOn):
    """Keeps live events back until they are let go."""

    def __init__(self, inner: Wire) -> None:
        super().__init__(inner)
        self.kept: list[tuple[str, bytes, str]] = []

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        if subject == TOPIC:
            self.kept.append((subject, payload, reply))
            return
        await super().publish(subject, payload, reply=reply, headers=headers)


async def fill(node: Node, count: int) -> None:
    for number in range(count):
        await node.queue.publish(INBOX.topic, event(f"e{number}", text="x" * 10_000))


async def test_it_returns_before_the_broker_has_heard_of_it(company: Company) -> None:
    wires: list[KeptBack] = []

    def through(wire: Wire) -> Wire:
        wires.append(KeptBack(wire))
        return wires[0]

    node = await company.node(through=through)

    await node.queue.publish_live(TOPIC, event("e1"))

    assert len(wires[0].kept) == 1
    assert await node.stored(topics.STREAM_EVENTS) == 0


async def test_what_the_broker_refuses_is_told(company: Company) -> None:
    node = await company.node(config=replace(SCALED, mailbox_max_bytes=100_000))
    await node.queue.ensure_subscription(INBOX)
    with pytest.raises(MailboxFull):
        await fill(node, 30)

    with capture_logs() as told:
        await node.queue.publish_live(INBOX.topic, event("e-live", text="x" * 10_000))
        await wait_until(lambda: any(line["event"] == "live_events_lost" for line in told), what="a loss that is told")

    [lost] = [line for line in told if line["event"] == "live_events_lost"]
    assert lost["count"] == 1


async def test_one_that_is_too_large_is_refused_before_it_is_sent(node: Node) -> None:
    told: list[str] = []

    async def listener(topic: str, event: Event) -> None:
        told.append(event.id)

    node.queue.add_publish_listener(listener)

    with pytest.raises(PayloadTooLarge):
        await node.queue.publish_live(TOPIC, event("e1", text="x" * node.wire.max_payload_bytes))

    assert told == []
    assert await node.stored(topics.STREAM_EVENTS) == 0


async def test_a_new_link_carries_them_on(company: Company, node: Node) -> None:
    async with proxied(int(company.broker.urls()[0].rpartition(":")[2])) as proxy:
        far = await company.node("far", url=proxy.url)
        proxy.drop()
        await wait_until(lambda: not far.wire.connected, what="a link that is down")
        await wait_until(lambda: far.wire.connected, what="a link that is back")

        await far.queue.publish_live(TOPIC, event("e1"))
        # Acknowledged behind it, so it has come by then.
        await far.queue.publish(TOPIC, event("e2"))

        assert await node.stored(topics.STREAM_EVENTS) == 2


async def test_one_whose_publisher_is_cancelled_is_told_to_every_listener(node: Node) -> None:
    entered = asyncio.Event()
    told: list[str] = []

    async def slow(topic: str, event: Event) -> None:
        told.append("slow")
        if not entered.is_set():
            entered.set()
            await asyncio.Event().wait()

    async def last(topic: str, event: Event) -> None:
        told.append("last")

    node.queue.add_publish_listener(slow)
    node.queue.add_publish_listener(last)
    publishing = asyncio.create_task(node.queue.publish_live(TOPIC, event("e1")))
    await entered.wait()

    publishing.cancel()

    await wait_until(lambda: told == ["slow", "slow", "last"], what="both listeners told")
    assert publishing.cancelled()
