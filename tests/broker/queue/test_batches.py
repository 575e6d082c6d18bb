"""Hauls on a real broker: what is collected, how it is cut, what each partition's outcome does to which messages."""

from __future__ import annotations

import asyncio

import pytest

from crewlet import topics
from crewlet.backends.nats import Wire
from crewlet.queue import BatchOptions, Defer, Nak, QueueConfig
from crewlet.testing import wait_until
from crewlet.testing.contracts.queue_handlers import BatchRecorder
from tests.broker.queue.batch_rig import GatedBatches, conversation, lapse, said
from tests.broker.queue.rig import INBOX, SCALED, Company, Node, event, place
from tests.broker.queue.wires import DelayedInfo

pytestmark = pytest.mark.slow


async def mail(node: Node, *ids: str) -> None:
    """Waiting mail, in this order, each a second younger than the one before."""
    await node.queue.ensure_subscription(INBOX)
    for number, event_id in enumerate(ids):
        await node.queue.publish(INBOX.topic, said(event_id, at_s=number))
    await counted(node, pending=len(ids))


async def attach(node: Node, handler: BatchRecorder, options: BatchOptions | None = None) -> None:
    await node.queue.subscribe_batch(INBOX, handler, partition=conversation, options=lambda: options or BatchOptions())


async def counted(node: Node, *, pending: int) -> None:
    """The mailbox has heard of what its stream has: the broker acknowledges a publish before."""

    async def heard() -> bool:
        state = await node.queue.mailbox(INBOX)
        return state is not None and state.pending == pending

    await wait_until(heard, what=f"a mailbox with {pending} pending")


async def empty(node: Node) -> None:
    async def nothing_stored() -> bool:
        return await node.stored() == 0

    await wait_until(nothing_stored, what="an empty mailbox")


@pytest.mark.spec("E-057")
async def test_waiting_mail_is_one_haul_cut_by_conversation(node: Node) -> None:
    handler = BatchRecorder()
    await mail(node, "a1", "b1", "a2", "c1", "b2")

    await attach(node, handler)
    await handler.handled(3)

    assert handler.ids == [["a1", "a2"], ["b1", "b2"], ["c1"]]
    await empty(node)


async def test_a_haul_begins_with_a_message_that_was_waited_for(node: Node) -> None:
    handler = BatchRecorder()
    await attach(node, handler)

    await node.queue.publish(INBOX.topic, said("a1"))
    await handler.handled(1)
    await node.queue.publish(INBOX.topic, said("a2"))
    await handler.handled(2)

    assert handler.ids == [["a1"], ["a2"]]


@pytest.mark.spec("E-057")
async def test_a_haul_is_capped(node: Node) -> None:
    handler = BatchRecorder()
    await mail(node, *(f"a{number}" for number in range(7)))

    await attach(node, handler, BatchOptions(max_events=3))
    await handler.handled(3)

    assert [len(batch) for batch in handler.ids] == [3, 3, 1]


@pytest.mark.spec("E-057")
async def test_the_linger_counts_from_the_first_message(node: Node) -> None:
    handler = BatchRecorder()
    await attach(node, handler, BatchOptions(linger_s=0.6, max_events=100))
    loop = asyncio.get_running_loop()

    started_at = loop.time()
    while not handler.batches:
        # Arrivals that never cease must not keep the first one waiting.
        await node.queue.publish(INBOX.topic, said(f"a{loop.time()}", at_s=loop.time()))
        await asyncio.sleep(0.02)

    assert 0.55 <= handler.started_at_s[0] - started_at < 1.2
    assert len(handler.ids[0]) > 5


@pytest.mark.spec("E-057")
async def test_a_full_haul_does_not_wait_out_its_linger(node: Node) -> None:
    handler = BatchRecorder()
    await mail(node, "a1", "a2")

    async with asyncio.timeout(5):
        await attach(node, handler, BatchOptions(linger_s=60, max_events=2))
        await handler.handled(1)

    assert handler.ids == [["a1", "a2"]]


async def test_the_options_are_asked_before_each_haul(node: Node) -> None:
    handler = BatchRecorder()
    caps = iter([1, 2])
    last = 3

    def options() -> BatchOptions:
        return BatchOptions(max_events=next(caps, last))

    await mail(node, *(f"a{number}" for number in range(6)))
    await node.queue.subscribe_batch(INBOX, handler, partition=conversation, options=options)
    await handler.handled(3)

    assert [len(batch) for batch in handler.ids] == [1, 2, 3]


@pytest.mark.spec("E-066")
async def test_the_conversation_that_waits_longest_goes_first(node: Node) -> None:
    handler = BatchRecorder()
    await node.queue.ensure_subscription(INBOX)
    for event_id, at_s in (("a2", 5.0), ("b1", 3.0), ("a1", 4.0), ("c1", 9.0)):
        await node.queue.publish(INBOX.topic, said(event_id, at_s=at_s))

    await attach(node, handler)
    await handler.handled(3)

    assert handler.ids == [["b1"], ["a1", "a2"], ["c1"]]


@pytest.mark.spec("E-077")
async def test_partitions_run_one_after_another_and_nothing_is_fetched_meanwhile(node: Node) -> None:
    handler = GatedBatches()
    await mail(node, "a1", "b1")
    await attach(node, handler)
    await handler.handled(1)

    await node.queue.publish(INBOX.topic, said("c1"))
    await counted(node, pending=1)
    state = await node.queue.mailbox(INBOX)
    handler.gate.set()
    await handler.handled(3)

    assert state is not None
    assert (state.pending, state.held, state.waiting_pulls) == (1, 2, 0)
    assert handler.most_running == 1


@pytest.mark.spec("E-057", "E-058")
async def test_nothing_is_acknowledged_before_its_call_returns(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    busy, heir = GatedBatches(), BatchRecorder()
    await mail(first, "a1", "a2", "b1")
    await attach(first, busy)
    await busy.handled(1)

    await first.vanish()
    await second.queue.release_held(INBOX)
    await attach(second, heir)
    await heir.handled(2)

    assert heir.headrooms == {"a1": [2], "a2": [2], "b1": [2]}


@pytest.mark.spec("E-058")
async def test_a_crash_during_the_collection_loses_nothing(company: Company) -> None:
    first, second = await company.node("first"), await company.node("second")
    handler, heir = BatchRecorder(), BatchRecorder()
    await mail(second, "a1", "b1")
    await attach(first, handler, BatchOptions(linger_s=60))

    async def collecting() -> bool:
        return await second.held() == 2

    await wait_until(collecting, what="a haul that collects")
    await first.vanish()
    await second.queue.release_held(INBOX)
    await attach(second, heir)
    await heir.handled(2)

    assert handler.batches == []
    assert heir.headrooms == {"a1": [2], "b1": [2]}


@pytest.mark.spec("E-059")
@pytest.mark.parametrize("failure", [Nak("no"), RuntimeError("no")])
async def test_a_failing_partition_hands_back_its_own_and_no_other(node: Node, failure: Nak | Exception) -> None:
    handler = BatchRecorder(b=[failure])
    await mail(node, "a1", "b1", "c1", "b2")

    await attach(node, handler)
    await empty(node)

    assert handler.headrooms == {"a1": [3], "c1": [3], "b1": [3, 2], "b2": [3, 2]}


@pytest.mark.spec("E-059")
async def test_each_message_of_a_failing_partition_keeps_its_own_pause(company: Company) -> None:
    node = await company.node(config=QueueConfig(ack_wait_s=20.0, nak_backoff_first_s=0.4))
    handler = BatchRecorder(a=[Nak(), Nak()])
    await mail(node, "a1")
    await attach(node, handler)
    await handler.handled(1)
    await node.queue.wait_idle(INBOX)
    await node.queue.hold(INBOX, "until both are there")
    await node.queue.publish(INBOX.topic, said("a2", at_s=9))
    await lapse(0.8)

    await node.queue.lift(INBOX, "until both are there")
    await handler.handled(4)

    # They failed together; the older waits for its second pause, the younger for its first.
    assert handler.ids == [["a1"], ["a1", "a2"], ["a2"], ["a1"]]


@pytest.mark.spec("E-044", "E-045")
async def test_a_partition_of_mixed_counts_tells_both_numbers(node: Node) -> None:
    handler = BatchRecorder(a=[Nak()])
    await mail(node, "a1")
    await attach(node, handler)
    await handler.handled(1)
    await node.queue.hold(INBOX, "until the other is there")
    await node.queue.publish(INBOX.topic, said("a2", at_s=1))

    await lapse(4 * SCALED.nak_backoff_first_s)
    await node.queue.lift(INBOX, "until the other is there")
    await handler.handled(2)

    both = handler.batches[1]
    assert [(delivery.event.id, delivery.headroom) for delivery in both.deliveries] == [("a1", 2), ("a2", 3)]
    assert both.headroom == 2


@pytest.mark.spec("E-060")
@pytest.mark.parametrize("verb", ["hold", "quiesce", "detach"])
async def test_a_stop_during_the_collection_hands_the_whole_haul_back(company: Company, verb: str) -> None:
    node, other = await company.node("node"), await company.node("other")
    handler, heir = BatchRecorder(), BatchRecorder()
    await mail(node, "a1", "b1")
    await attach(node, handler, BatchOptions(linger_s=60))

    async def collecting() -> bool:
        return await node.held() == 2

    await wait_until(collecting, what="a haul that collects")
    match verb:
        case "hold":
            await node.queue.hold(INBOX, "pause")
        case "quiesce":
            await node.queue.quiesce(INBOX)
        case _:
            await node.queue.detach(INBOX)
    await attach(other, heir)
    await heir.handled(2)

    assert handler.batches == []
    assert heir.headrooms == {"a1": [2], "b1": [2]}


@pytest.mark.spec("E-061")
@pytest.mark.parametrize("verb", ["hold", "quiesce", "defer"])
async def test_a_stop_between_partitions_hands_the_rest_back_at_one_delivery_each(company: Company, verb: str) -> None:
    node, other = await company.node("node"), await company.node("other")
    heir = BatchRecorder()
    handler = GatedBatches(a=[Defer("moved")]) if verb == "defer" else GatedBatches()
    await mail(node, "a1", "b1", "c1")
    await attach(node, handler)
    await handler.handled(1)

    match verb:
        case "hold":
            await node.queue.hold(INBOX, "pause")
        case "quiesce":
            await node.queue.quiesce(INBOX)
        case _:
            pass
    handler.gate.set()
    await node.queue.wait_idle(INBOX)
    await attach(other, heir)
    await heir.handled(3 if verb == "defer" else 2)

    assert handler.ids == [["a1"]]
    deferred = {"a1": [2]} if verb == "defer" else {}
    assert heir.headrooms == {**deferred, "b1": [2], "c1": [2]}


@pytest.mark.spec("E-061")
async def test_a_detach_gives_the_rest_back_without_waiting_for_the_running_call(company: Company) -> None:
    node, other = await company.node("node"), await company.node("other")
    handler, heir = GatedBatches(), BatchRecorder()
    await mail(node, "a1", "b1", "c1")
    await attach(node, handler)
    await handler.handled(1)

    await node.queue.detach(INBOX)
    await attach(other, heir)
    await heir.handled(2)
    still_running = handler.running
    handler.gate.set()

    assert still_running == 1
    assert heir.headrooms == {"b1": [2], "c1": [2]}
    assert handler.ids == [["a1"]]


@pytest.mark.spec("E-061")
async def test_the_rest_of_a_stopped_haul_is_buried_where_its_budget_is_spent(company: Company) -> None:
    once = QueueConfig(ack_wait_s=20.0, max_deliver=1)
    node = await company.node(config=once)
    handler = GatedBatches()
    await mail(node, "a1", "b1")
    await attach(node, handler)
    await handler.handled(1)

    await node.queue.quiesce(INBOX)
    handler.gate.set()
    await node.queue.wait_idle(INBOX)

    assert await node.stored() == 0
    assert await node.stored(topics.STREAM_DLQ) == 1


@pytest.mark.spec("E-036")
async def test_a_deferred_partition_comes_first_and_in_its_order(node: Node) -> None:
    handler = GatedBatches(a=[Defer("moved")])
    await mail(node, "a1", "b1", "a2", "c1")
    await attach(node, handler, BatchOptions(max_events=3))
    await handler.handled(1)
    handler.gate.set()
    await node.queue.wait_idle(INBOX)

    await node.queue.detach(INBOX)
    again = BatchRecorder()
    await attach(node, again, BatchOptions(max_events=1))
    await again.handled(4)

    assert again.ids == [["a1"], ["b1"], ["a2"], ["c1"]]
    assert again.headrooms == {"a1": [2], "b1": [2], "a2": [2], "c1": [3]}


async def test_an_unreadable_event_is_buried_alone(node: Node) -> None:
    handler = BatchRecorder()
    await mail(node, "a1")
    await node.api.publish(INBOX.topic, b"{not an event")
    await node.queue.publish(INBOX.topic, said("a2", at_s=5))

    await attach(node, handler)
    await handler.handled(1)
    await empty(node)

    assert handler.ids == [["a1", "a2"]]
    assert await node.stored(topics.STREAM_DLQ) == 1


async def test_the_clocks_of_a_whole_haul_are_extended_while_it_is_worked(company: Company) -> None:
    node = await company.node(config=QueueConfig(ack_wait_s=0.6, max_deliver=4))
    handler = GatedBatches()
    await mail(node, "a1", "b1")
    await attach(node, handler)
    await handler.handled(1)

    await lapse(2.0)
    handler.gate.set()
    await empty(node)

    assert handler.headrooms == {"a1": [3], "b1": [3]}


@pytest.mark.spec("E-065")
async def test_a_haul_that_outlasts_the_ack_window_comes_again_as_the_same_messages(company: Company) -> None:
    brief = QueueConfig(ack_wait_s=0.5, max_deliver=4)
    first, second = await company.node("first", config=brief), await company.node("second", config=brief)
    handler, heir = GatedBatches(), BatchRecorder()
    await mail(first, "a1", "b1")
    await attach(first, handler)
    await handler.handled(1)
    published = await second.api.stream_info(topics.STREAM_AGENT)

    await first.vanish()
    await attach(second, heir)
    await empty(second)

    after = await second.api.stream_info(topics.STREAM_AGENT)
    assert heir.headrooms == {"a1": [2], "b1": [2]}
    assert published is not None
    assert after is not None
    assert after.state.last_seq == published.state.last_seq


async def test_a_process_is_attached_once_in_whichever_way(node: Node) -> None:
    await attach(node, BatchRecorder())

    with pytest.raises(ValueError, match="attached"):
        await attach(node, BatchRecorder())


async def test_a_haul_goes_on_after_the_link_dropped(company: Company) -> None:
    node = await company.node()
    handler = BatchRecorder()
    await attach(node, handler)
    await node.queue.publish(INBOX.topic, said("a1"))
    await handler.handled(1)

    await company.broker.stop()
    await company.broker.start()
    await node.queue.publish(INBOX.topic, said("a2"))
    await handler.handled(2)

    assert handler.ids == [["a1"], ["a2"]]


async def test_options_that_fail_leave_the_seat_working(node: Node) -> None:
    handler = BatchRecorder()

    def options() -> BatchOptions:
        raise RuntimeError("no document")

    await node.queue.subscribe_batch(INBOX, handler, partition=conversation, options=options)
    await node.queue.publish(INBOX.topic, said("a1"))

    await handler.handled(1)


async def test_no_request_is_left_at_the_broker_after_a_haul(node: Node) -> None:
    handler = GatedBatches()
    await mail(node, "a1")
    await attach(node, handler, BatchOptions(linger_s=0.2))
    await handler.handled(1)

    await node.queue.publish(INBOX.topic, event("later"))
    await counted(node, pending=1)

    info = await node.api.consumer_info(*place(INBOX))
    assert info is not None
    assert (info.num_waiting, info.num_pending, info.num_ack_pending) == (0, 1, 1)
    handler.gate.set()


@pytest.mark.parametrize("linger_s", [0.0, 0.05])
async def test_holds_at_any_instant_lose_nothing_and_repeat_nothing(company: Company, linger_s: float) -> None:
    patient = QueueConfig(ack_wait_s=60.0, max_deliver=1000)
    node, sender = await company.node("node", config=patient), await company.node("sender", config=patient)
    handler = BatchRecorder()
    wanted = [f"{'abc'[number % 3]}{number}" for number in range(60)]
    await attach(node, handler, BatchOptions(linger_s=linger_s, max_events=7))

    async def send() -> None:
        for number, event_id in enumerate(wanted):
            await sender.queue.publish(INBOX.topic, said(event_id, at_s=number))

    sending = asyncio.create_task(send())
    for number in range(80):
        await node.queue.hold(INBOX, "pause")
        if number % 3:
            await asyncio.sleep(0)
        await node.queue.lift(INBOX, "pause")
        await lapse(0.001 * (number % 5))
    await sending
    await empty(node)

    handled = [delivery.event.id for batch in handler.batches for delivery in batch.deliveries]
    assert sorted(handled) == sorted(wanted)


async def test_closing_during_a_haul_leaves_nothing_behind(company: Company) -> None:
    node, other = await company.node("node"), await company.node("other")
    handler, heir = GatedBatches(), BatchRecorder()
    await mail(node, "a1", "b1")
    await attach(node, handler)
    await handler.handled(1)

    await node.queue.close()
    await attach(other, heir)
    await heir.handled(1)

    assert node.queue.task_count == 0
    assert heir.ids == [["b1"]]


async def test_what_a_haul_collects_is_not_taken_for_lost(company: Company) -> None:
    delayed: list[DelayedInfo] = []

    def through(wire: Wire) -> Wire:
        delayed.append(DelayedInfo(wire))
        return delayed[0]

    node, other = await company.node("node", through=through), await company.node("other")
    await attach(node, BatchRecorder(), BatchOptions(linger_s=60))
    await delayed[0].asked.wait()
    await other.queue.publish(INBOX.topic, said("a1"))

    async def collecting() -> bool:
        return await other.held() == 1

    await wait_until(collecting, what="a haul that collects")
    delayed[0].gate.set()
    await delayed[0].answered.wait()
    await node.queue.hold(INBOX, "end of the test")

    assert node.stranded == []
