"""Quiesce, unquiesce, detach, release: nothing is lost and nothing is held, whenever they come."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from crewlet.backends.nats.jetstream_types import ns
from crewlet.base import limits
from crewlet.queue import Ack, Nak, QueueConfig, Subscription
from crewlet.testing import wait_until
from crewlet.testing.contracts.queue_handlers import Busy, Recorder
from tests.broker.queue.rig import INBOX, SCALED, Company, Node, die_at_work, event, place

pytestmark = pytest.mark.slow


async def waiting(node: Node, count: int = 1) -> None:
    async def asked() -> bool:
        info = await node.api.consumer_info(*place(INBOX))
        return info is not None and info.num_waiting == count

    await wait_until(asked, what=f"{count} requests waiting at the broker")


async def test_a_message_that_arrives_in_the_instant_of_a_quiesce_comes_again_at_once(company: Company) -> None:
    # Its ack clock outlasts this test: only a message that was handed back can come again in time.
    node, peer = await company.node("node"), await company.node("peer")
    handler = Recorder()
    await node.queue.subscribe(INBOX, handler)

    for number in range(40):
        publishing = asyncio.create_task(peer.queue.publish(INBOX.topic, event(f"m{number}")))
        if number % 4:
            await asyncio.sleep(0)
        await node.queue.quiesce(INBOX)
        await publishing
        await node.queue.wait_idle(INBOX)
        await node.queue.unquiesce(INBOX)
        await handler.handled(number + 1)

    assert handler.ids == [f"m{number}" for number in range(40)]


@pytest.mark.spec("E-093", "S-136")
async def test_detaching_while_mail_arrives_loses_nothing(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    leaver, heir = Recorder(), Recorder()
    for number in range(40):
        await first.queue.subscribe(INBOX, leaver)
        publishing = asyncio.create_task(second.queue.publish(INBOX.topic, event(f"m{number}")))
        if number % 2:
            await waiting(first)
        await first.queue.detach(INBOX)
        await publishing

    await second.queue.subscribe(INBOX, heir)

    async def all_worked() -> bool:
        return await second.stored() == 0

    await wait_until(all_worked, what="an empty mailbox")
    assert sorted({*leaver.ids, *heir.ids}) == sorted(f"m{number}" for number in range(40))


@pytest.mark.spec("S-136")
async def test_what_a_dead_holder_had_fetched_comes_back_at_once_one_delivery_dearer(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    handler = Recorder()
    busy = Busy()
    await first.queue.subscribe(INBOX, busy)
    await first.queue.publish(INBOX.topic, event("m1"))
    await busy.entered.wait()
    await first.queue.publish(INBOX.topic, event("m2"))
    await first.vanish()

    started_at = asyncio.get_running_loop().time()
    await second.queue.release_held(INBOX)
    await second.queue.subscribe(INBOX, handler)
    await handler.handled(2)

    print(f"released and attached in {handler.started_at_s[0] - started_at:.3f} s")
    assert handler.started_at_s[0] - started_at < 1.0
    assert handler.ids == ["m1", "m2"]
    assert handler.headrooms == [2, 3]


async def test_releasing_restores_the_ack_clock(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    await die_at_work(first)

    await second.queue.release_held(INBOX)

    info = await second.api.consumer_info(*place(INBOX))
    assert info is not None
    assert info.config.ack_wait == ns(SCALED.ack_wait_s)


async def test_releasing_where_nothing_is_held_costs_one_question(node: Node) -> None:
    await node.queue.ensure_subscription(INBOX)
    loop = asyncio.get_running_loop()

    started_at = loop.time()
    await node.queue.release_held(INBOX)

    assert loop.time() - started_at < 0.05


async def test_releasing_is_repeated_when_a_peer_repairs_the_clock_meanwhile(company: Company) -> None:
    first, second, third = await company.node("first"), await company.node("second"), await company.node("third")
    handler = Recorder()
    await die_at_work(first)

    releasing = asyncio.create_task(second.queue.release_held(INBOX))

    async def lowered() -> bool:
        info = await third.api.consumer_info(*place(INBOX))
        return info is not None and info.config.ack_wait == ns(0.001)

    await wait_until(lowered, what="the lowered clock")
    await third.queue.ensure_subscription(INBOX)
    await releasing
    await second.queue.subscribe(INBOX, handler)

    await handler.handled(1)


async def test_a_delivery_lost_on_its_way_is_noticed_and_can_be_released_while_attached(company: Company) -> None:
    node, ghost = await company.node("node"), await company.node("ghost")
    handler = Recorder()
    await node.queue.ensure_subscription(INBOX)
    await node.queue.publish(INBOX.topic, event("m1"))
    stream, name = place(INBOX)
    request = msgspec.json.encode({"batch": 1, "expires": ns(5)})
    await ghost.wire.publish(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}", request, reply=ghost.wire.new_inbox())
    arrived = asyncio.Event()
    inbox = ghost.wire.new_inbox()
    await ghost.wire.subscribe(inbox, lambda _message: arrived.set())
    await ghost.wire.publish(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}", request, reply=inbox)
    await arrived.wait()
    await ghost.vanish()

    await node.queue.subscribe(INBOX, handler)
    await wait_until(lambda: node.stranded == [INBOX], what="the notice")
    await node.queue.release_held(INBOX)

    await handler.handled(1)
    assert handler.ids == ["m1"]


async def test_a_deferral_during_a_release_keeps_the_attachment_quiet(node: Node) -> None:
    handler = Recorder(Nak(), Ack())
    await node.queue.subscribe(INBOX, handler)
    await node.queue.quiesce(INBOX)

    await node.queue.release_held(INBOX)
    await node.queue.publish(INBOX.topic, event("m1"))

    info = await node.api.consumer_info(*place(INBOX))
    assert info is not None
    assert (info.num_waiting, handler.ids) == (0, [])


async def test_closing_leaves_no_task_and_no_request_behind(company: Company) -> None:
    node, peer = await company.node("node"), await company.node("peer")
    busy = Busy()
    await node.queue.subscribe(INBOX, busy)
    await node.queue.subscribe(Subscription("crewlet.agent.bob.inbox", "agent-bob"), Recorder())
    await node.queue.subscribe_stream("crewlet.events.>", lambda _topic, _event: None)
    await node.queue.publish(INBOX.topic, event("m1"))
    await busy.entered.wait()

    await node.queue.close()

    assert node.queue.task_count == 0
    assert await peer.api.consumer_names("CREWLET_EVENTS") == []
    for info in await peer.api.consumer_infos("CREWLET_AGENT"):
        assert info.num_waiting == 0


async def test_what_waits_out_its_own_backoff_is_not_taken_for_lost(company: Company) -> None:
    patient = QueueConfig(ack_wait_s=60.0, max_deliver=4, nak_backoff_first_s=30.0)
    node = await company.node(config=patient)
    handler = Recorder(Nak())
    quiet = asyncio.Event()
    await node.queue.subscribe(INBOX, handler)
    await node.queue.publish(INBOX.topic, event("m1"))
    await handler.handled(1)

    asyncio.get_running_loop().call_later(1.3 * limits.PULL_HEARTBEAT_S, quiet.set)
    await quiet.wait()

    assert await node.held() == 1
    assert node.stranded == []


async def test_detaching_does_not_wait_for_a_broker_that_is_gone(company: Company) -> None:
    node = await company.node()
    await node.queue.subscribe(INBOX, Recorder())
    await waiting(node)
    await company.broker.stop()
    await wait_until(lambda: not node.wire.connected, what="the drop")

    async with asyncio.timeout(1.0):
        await node.queue.detach(INBOX)
