"""Promises about batches: how a haul is collected, cut into partitions, worked and settled."""

from __future__ import annotations

import pytest

from crewlet.events import Event
from crewlet.queue import Ack, Batch, BatchHandler, BatchOptions, Defer, EventQueue, Nak, Outcome
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.queue_dead_letters import buried
from crewlet.testing.contracts.queue_handlers import BatchRecorder, Recorder
from crewlet.testing.contracts.queue_harness import QueueHarness, event

__all__ = ["BatchCollection", "BatchSettlement", "attach", "waiting"]


def talk(event: Event) -> str:
    """Which conversation an event of this suite belongs to."""
    return str(event.payload["talk"])


async def waiting(queue: QueueHarness, *events: Event) -> EventQueue:
    """A client, and mail that waits in its inbox."""
    client = await queue.client()
    await client.ensure_subscription(queue.inbox())
    for each in events:
        await client.publish(queue.inbox().topic, each)
    return client


async def attach(
    client: EventQueue, queue: QueueHarness, handler: BatchHandler, *, linger_s: float = 0.0, max_events: int = 20
) -> None:
    """Work the inbox in batches by conversation."""
    options = BatchOptions(linger_s=linger_s, max_events=max_events)
    await client.subscribe_batch(queue.inbox(), handler, partition=talk, options=lambda: options)


class BatchCollection(Contract):
    """What one haul takes, and in which order it is worked."""

    @pytest.mark.spec("E-057")
    async def test_what_waits_is_taken_whole_and_cut_by_the_callers_key(self, queue: QueueHarness) -> None:
        mail = [event(f"m{n}", talk=key, age=10 - n) for n, key in enumerate("abab")]
        client, handler = await waiting(queue, *mail), BatchRecorder()
        await queue.disturb()

        await attach(client, queue, handler)

        await queue.emptied(queue.inbox())
        assert dict(zip(handler.keys, handler.ids, strict=True)) == {"a": ["m0", "m2"], "b": ["m1", "m3"]}

    @pytest.mark.spec("E-066")
    async def test_the_oldest_conversation_is_worked_first(self, queue: QueueHarness) -> None:
        mail = [event("hot1", talk="hot", age=5), event("cold", talk="cold", age=9), event("hot2", talk="hot", age=1)]
        client, handler = await waiting(queue, *mail), BatchRecorder()

        await attach(client, queue, handler)

        await queue.emptied(queue.inbox())
        assert handler.keys == ["cold", "hot"]

    @pytest.mark.spec("E-048")
    async def test_inside_a_partition_the_events_own_timestamps_decide(self, queue: QueueHarness) -> None:
        mail = [event("third", talk="a", age=1), event("first", talk="a", age=3), event("second", talk="a", age=2)]
        client, handler = await waiting(queue, *mail), BatchRecorder()

        await attach(client, queue, handler)

        await handler.handled(1)
        assert handler.ids == [["first", "second", "third"]]

    @pytest.mark.spec("E-057")
    async def test_a_haul_takes_no_more_than_its_cap(self, queue: QueueHarness) -> None:
        client = await waiting(queue, *(event(f"m{n}", talk="a", age=10 - n) for n in range(5)))
        handler = BatchRecorder()

        await attach(client, queue, handler, max_events=2)

        await queue.emptied(queue.inbox())
        assert handler.ids == [["m0", "m1"], ["m2", "m3"], ["m4"]]

    @pytest.mark.spec("E-057")
    async def test_arrivals_inside_the_linger_window_join_the_haul(self, queue: QueueHarness) -> None:
        client, handler = await waiting(queue), BatchRecorder()
        await attach(client, queue, handler, linger_s=1.5)

        await client.publish(queue.inbox().topic, event("m1", talk="a", age=2))
        await queue.advance(0.3)
        early = [*handler.ids]
        await client.publish(queue.inbox().topic, event("m2", talk="a", age=1))

        await handler.handled(1)
        assert (early, handler.ids) == ([], [["m1", "m2"]])

    @pytest.mark.spec("E-057")
    async def test_the_window_counts_from_the_first_message_and_not_from_the_last(self, queue: QueueHarness) -> None:
        client, handler = await waiting(queue), BatchRecorder()
        await attach(client, queue, handler, linger_s=0.8)
        published_at_s = queue.now_s()

        for number in range(6):
            await client.publish(queue.inbox().topic, event(f"m{number}", talk="a", age=10 - number))
            await queue.advance(0.3)

        await handler.handled(2)
        assert 0.7 < handler.started_at_s[0] - published_at_s < 1.4
        assert len(handler.ids[0]) in {2, 3, 4}

    async def test_a_full_haul_does_not_wait_out_its_window(self, queue: QueueHarness) -> None:
        client = await waiting(queue, *(event(f"m{n}", talk="a", age=10 - n) for n in range(2)))
        handler, started_at_s = BatchRecorder(), queue.now_s()

        await attach(client, queue, handler, linger_s=8.0, max_events=2)

        await handler.handled(1)
        assert handler.started_at_s[0] - started_at_s < 4.0
        assert handler.ids == [["m0", "m1"]]

    async def test_changed_options_hold_from_the_next_haul_on(self, queue: QueueHarness) -> None:
        client = await waiting(queue, *(event(f"m{n}", talk="a", age=10 - n) for n in range(4)))
        caps, handler = [1, 3], BatchRecorder()

        def options() -> BatchOptions:
            return BatchOptions(max_events=caps.pop(0) if caps else 1)

        await client.subscribe_batch(queue.inbox(), handler, partition=talk, options=options)

        await queue.emptied(queue.inbox())
        assert handler.ids == [["m0"], ["m1", "m2", "m3"]]

    async def test_an_event_whose_key_cannot_be_told_is_worked_alone(self, queue: QueueHarness) -> None:
        mail = [event("m0", talk="a", age=3), event("odd", age=2), event("m1", talk="a", age=1)]
        client, handler = await waiting(queue, *mail), BatchRecorder()

        await attach(client, queue, handler)

        await queue.emptied(queue.inbox())
        assert sorted(handler.ids) == [["m0", "m1"], ["odd"]]

    async def test_a_second_attach_of_one_process_is_refused(self, queue: QueueHarness) -> None:
        client = await waiting(queue)
        await attach(client, queue, BatchRecorder())

        with pytest.raises(ValueError, match="attached"):
            await attach(client, queue, BatchRecorder())
        with pytest.raises(ValueError, match="attached"):
            await client.subscribe(queue.inbox(), Recorder())


class BatchSettlement(Contract):
    """What one partition's outcome means for it, and for the others."""

    @pytest.mark.spec("E-057")
    async def test_partitions_are_worked_one_after_another_and_acknowledged_after_their_call(
        self, queue: QueueHarness
    ) -> None:
        mail = [event("m0", talk="a", age=3), event("m1", talk="b", age=2), event("m2", talk="b", age=1)]
        client = await waiting(queue, *mail)
        steps: list[tuple[str, int]] = []

        async def looks(batch: Batch) -> Outcome:
            steps.append((batch.key, await queue.held(queue.inbox())))
            return Ack()

        await attach(client, queue, looks)

        await queue.emptied(queue.inbox())
        assert steps == [("a", 3), ("b", 2)]

    @pytest.mark.spec("E-059")
    async def test_a_failing_partition_hands_back_exactly_its_own(self, queue: QueueHarness) -> None:
        mail = [event("bad1", talk="bad", age=5), event("good", talk="good", age=4), event("bad2", talk="bad", age=3)]
        client, handler = await waiting(queue, *mail), BatchRecorder(RuntimeError("no such tool"))

        await attach(client, queue, handler)

        await queue.emptied(queue.inbox())
        assert handler.ids[:2] == [["bad1", "bad2"], ["good"]]
        assert sorted(each for ids in handler.ids[2:] for each in ids) == ["bad1", "bad2"]

    @pytest.mark.spec("E-044", "E-045")
    async def test_a_partition_of_mixed_counts_tells_the_smallest_and_each_messages_own(
        self, queue: QueueHarness
    ) -> None:
        client = await waiting(queue, event("old", talk="a", age=9))
        spending, handler = BatchRecorder(Nak(), Defer("the lease moved")), BatchRecorder()
        await attach(client, queue, spending)
        await spending.handled(2)
        await client.wait_idle(queue.inbox())
        await client.detach(queue.inbox())
        await client.publish(queue.inbox().topic, event("new", talk="a", age=1))

        await attach(client, queue, handler)

        await handler.handled(1)
        batch = handler.batches[0]
        own = {delivery.event.id: delivery.headroom for delivery in batch.deliveries}
        assert own == {"old": queue.config.max_deliver - 3, "new": queue.config.max_deliver - 1}
        assert batch.headroom == queue.config.max_deliver - 3

    async def test_a_failing_partition_buries_what_is_spent_and_brings_the_rest_back(self, queue: QueueHarness) -> None:
        client = await waiting(queue, event("old", talk="a", age=9))
        spends = queue.config.max_deliver - 1
        spending = BatchRecorder(*[Nak()] * (spends - 1), Defer("the lease moved"))
        handler = BatchRecorder(Nak())
        await attach(client, queue, spending)
        await spending.handled(spends)
        await client.wait_idle(queue.inbox())
        await client.detach(queue.inbox())
        await client.publish(queue.inbox().topic, event("new", talk="a", age=1))

        await attach(client, queue, handler)

        await buried(queue, queue.inbox())
        assert handler.ids == [["old", "new"], ["new"]]

    async def test_what_is_no_event_is_buried_and_the_haul_goes_on(self, queue: QueueHarness) -> None:
        client = await waiting(queue, event("m0", talk="a", age=2))
        await queue.publish_raw(queue.inbox().topic, b"no event at all")
        await client.publish(queue.inbox().topic, event("m1", talk="a", age=1))
        handler = BatchRecorder()

        await attach(client, queue, handler)

        await buried(queue, queue.inbox())
        assert sorted(each for ids in handler.ids for each in ids) == ["m0", "m1"]
