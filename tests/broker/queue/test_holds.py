"""Named holds on a real broker: each stands until it is lifted, all go with the attachment."""

from __future__ import annotations

import pytest

from crewlet.queue import Ack, Defer
from crewlet.testing import wait_until
from crewlet.testing.contracts.queue_handlers import Recorder
from tests.broker.queue.batch_rig import lapse
from tests.broker.queue.rig import INBOX, Company, Node, event, place

pytestmark = pytest.mark.slow


async def delivered_marks(node: Node) -> tuple[int, int, int]:
    info = await node.api.consumer_info(*place(INBOX))
    assert info is not None
    return info.delivered.consumer_seq, info.num_ack_pending, info.num_waiting


async def asking(node: Node) -> None:
    async def asked() -> bool:
        return (await delivered_marks(node))[2] == 1

    await wait_until(asked, what="a request that waits at the broker")


@pytest.mark.spec("E-080")
async def test_lifting_one_hold_leaves_the_other_in_force(node: Node) -> None:
    handler = Recorder()
    await node.queue.subscribe(INBOX, handler)
    await node.queue.hold(INBOX, "sandbox")
    await node.queue.hold(INBOX, "person")
    await node.queue.publish(INBOX.topic, event("m1"))

    await node.queue.lift(INBOX, "sandbox")
    still_held = await delivered_marks(node)
    await node.queue.lift(INBOX, "person")
    await handler.handled(1)

    assert still_held == (0, 0, 0)


@pytest.mark.spec("E-080")
async def test_a_quiesce_is_a_hold_of_its_own(node: Node) -> None:
    handler = Recorder(Defer("moved"), Ack())
    await node.queue.subscribe(INBOX, handler)
    await node.queue.publish(INBOX.topic, event("m1"))
    await handler.handled(1)
    await node.queue.wait_idle(INBOX)

    await node.queue.hold(INBOX, "person")
    await node.queue.unquiesce(INBOX)
    held_by_the_person = await delivered_marks(node)
    await node.queue.lift(INBOX, "person")
    await handler.handled(2)

    assert held_by_the_person[2] == 0
    assert handler.headrooms == [3, 2]


@pytest.mark.spec("E-080")
async def test_a_hold_taken_before_the_attach_holds_from_the_start(node: Node) -> None:
    handler = Recorder()
    await node.queue.ensure_subscription(INBOX)
    await node.queue.publish(INBOX.topic, event("m1"))

    await node.queue.hold(INBOX, "person")
    await node.queue.subscribe(INBOX, handler)
    await lapse(0.2)
    before = await delivered_marks(node)
    await node.queue.lift(INBOX, "person")
    await handler.handled(1)

    assert before == (0, 0, 0)


async def test_a_hold_lifted_before_the_attach_is_gone(node: Node) -> None:
    handler = Recorder()
    await node.queue.hold(INBOX, "person")
    await node.queue.lift(INBOX, "person")

    await node.queue.subscribe(INBOX, handler)
    await node.queue.publish(INBOX.topic, event("m1"))

    await handler.handled(1)


@pytest.mark.spec("E-080")
async def test_a_detach_drops_every_hold(node: Node) -> None:
    handler = Recorder()
    await node.queue.hold(INBOX, "person")
    await node.queue.subscribe(INBOX, handler)
    await node.queue.hold(INBOX, "sandbox")

    await node.queue.detach(INBOX)
    await node.queue.subscribe(INBOX, handler)
    await node.queue.publish(INBOX.topic, event("m1"))

    await handler.handled(1)


@pytest.mark.spec("E-081")
async def test_what_is_held_keeps_its_order_and_its_count(company: Company) -> None:
    node, sender = await company.node("node"), await company.node("sender")
    handler = Recorder()
    await node.queue.subscribe(INBOX, handler)
    await asking(node)
    await node.queue.hold(INBOX, "person")
    for number in range(3):
        await sender.queue.publish(INBOX.topic, event(f"m{number}"))

    at_first = await delivered_marks(sender)
    await lapse(0.3)
    at_last, stored = await delivered_marks(sender), await sender.stored()
    await node.queue.lift(INBOX, "person")
    await handler.handled(3)

    assert at_first == at_last == (0, 0, 0)
    assert stored == 3
    assert (handler.ids, handler.headrooms) == (["m0", "m1", "m2"], [3, 3, 3])
