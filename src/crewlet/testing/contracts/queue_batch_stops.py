"""Promises about stops in the middle of a haul: the rest goes back, one delivery dearer each."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.queue import Ack, Batch, Defer, Nak, Outcome
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.queue_batches import attach, waiting
from crewlet.testing.contracts.queue_dead_letters import buried
from crewlet.testing.contracts.queue_handlers import BatchRecorder, Recorder
from crewlet.testing.contracts.queue_harness import QueueHarness, event
from crewlet.testing.waiting import wait_until

__all__ = ["BatchStops"]


class BatchStops(Contract):
    """What a stop in the middle does: the rest goes back, one delivery dearer."""

    @pytest.mark.spec("E-060")
    async def test_a_hold_during_the_collection_hands_the_whole_haul_back(self, queue: QueueHarness) -> None:
        client, handler = await waiting(queue), BatchRecorder()
        await attach(client, queue, handler, linger_s=2.0)
        await client.publish(queue.inbox().topic, event("m1", talk="a", age=2))
        await wait_until(lambda: _holds(queue, 1), what="a collection under way")

        await client.hold(queue.inbox(), "pause")
        await queue.quiet()
        while_held = ([*handler.ids], await queue.retained(queue.inbox().topic))
        heir = await takes_over(queue, 1)

        assert (while_held, heir.ids, handler.ids) == (([], 1), ["m1"], [])
        assert heir.headrooms == [queue.config.max_deliver - 2]

    async def test_a_quiesce_during_the_collection_hands_the_whole_haul_back(self, queue: QueueHarness) -> None:
        client, handler = await waiting(queue), BatchRecorder()
        await attach(client, queue, handler, linger_s=2.0)
        await client.publish(queue.inbox().topic, event("m1", talk="a", age=2))
        await wait_until(lambda: _holds(queue, 1), what="a collection under way")

        await client.quiesce(queue.inbox())
        await queue.quiet()
        heir = await takes_over(queue, 1)

        assert (handler.ids, heir.ids, heir.headrooms) == ([], ["m1"], [queue.config.max_deliver - 2])

    async def test_a_detach_during_the_collection_hands_the_whole_haul_back(self, queue: QueueHarness) -> None:
        client, handler = await waiting(queue), BatchRecorder()
        await attach(client, queue, handler, linger_s=2.0)
        await client.publish(queue.inbox().topic, event("m1", talk="a", age=2))
        await wait_until(lambda: _holds(queue, 1), what="a collection under way")

        await client.detach(queue.inbox())
        heir = await takes_over(queue, 1)

        assert (handler.ids, heir.ids, heir.headrooms) == ([], ["m1"], [queue.config.max_deliver - 2])

    @pytest.mark.spec("E-036", "E-061")
    async def test_a_deferral_hands_back_its_partition_and_those_not_worked_yet(self, queue: QueueHarness) -> None:
        first = await waiting(queue, *(event(f"m{n}", talk=f"t{n}", age=9 - n) for n in range(3)))
        handler = BatchRecorder(Ack(), Defer("the lease moved"))
        await attach(first, queue, handler)
        await handler.handled(2)
        await first.wait_idle(queue.inbox())

        heir = await takes_over(queue, 2)

        assert (handler.ids, sorted(heir.ids)) == ([["m0"], ["m1"]], ["m1", "m2"])
        assert heir.headrooms == [queue.config.max_deliver - 2] * 2

    @pytest.mark.spec("E-061")
    async def test_a_hold_between_two_partitions_stops_the_haul(self, queue: QueueHarness) -> None:
        client = await waiting(queue, *(event(f"m{n}", talk=f"t{n}", age=9 - n) for n in range(3)))
        worked = BatchRecorder()

        async def holds_itself(batch: Batch) -> Outcome:
            outcome = await worked(batch)
            if len(worked.ids) == 1:
                await asyncio.wait_for(client.hold(queue.inbox(), "pause"), 5.0)
            return outcome

        await attach(client, queue, holds_itself)
        await worked.handled(1)
        await queue.quiet()
        while_held = ([*worked.ids], await queue.retained(queue.inbox().topic))
        heir = await takes_over(queue, 2)

        assert while_held == ([["m0"]], 2)
        assert sorted(heir.ids) == ["m1", "m2"]
        assert heir.headrooms == [queue.config.max_deliver - 2] * 2

    @pytest.mark.spec("E-061")
    async def test_a_detach_between_two_partitions_stops_the_haul(self, queue: QueueHarness) -> None:
        client = await waiting(queue, *(event(f"m{n}", talk=f"t{n}", age=9 - n) for n in range(3)))
        worked = BatchRecorder()

        async def detaches_itself(batch: Batch) -> Outcome:
            outcome = await worked(batch)
            await asyncio.wait_for(client.detach(queue.inbox()), 5.0)
            return outcome

        await attach(client, queue, detaches_itself)
        await worked.handled(1)
        await queue.quiet()
        heir = await takes_over(queue, 2)

        assert worked.ids == [["m0"]]
        assert sorted(heir.ids) == ["m1", "m2"]

    @pytest.mark.spec("E-061")
    async def test_what_is_spent_when_a_haul_stops_is_buried(self, queue: QueueHarness) -> None:
        client, spends = await waiting(queue, event("spent", talk="b", age=1)), queue.config.max_deliver - 1
        spending = BatchRecorder(*[Nak()] * (spends - 1), Defer("the lease moved"))
        await attach(client, queue, spending)
        await spending.handled(spends)
        await client.wait_idle(queue.inbox())
        await client.detach(queue.inbox())
        await client.publish(queue.inbox().topic, event("first", talk="a", age=9))
        worked = BatchRecorder(Defer("the lease moved"))

        await attach(client, queue, worked)
        await worked.handled(1)
        heir = await takes_over(queue, 1)

        await buried(queue, queue.inbox())
        assert (worked.ids, heir.ids) == ([["first"]], ["first"])


async def _holds(queue: QueueHarness, count: int) -> bool:
    return await queue.held(queue.inbox()) == count


async def takes_over(queue: QueueHarness, count: int) -> Recorder:
    """Another client, once it was handed so much: all of it long before any ack clock could have run out."""
    client, heir, started_at_s = await queue.client("heir"), Recorder(), queue.now_s()
    await client.subscribe(queue.inbox(), heir)
    await heir.handled(count)
    assert heir.started_at_s[-1] - started_at_s < queue.config.ack_wait_s / 3
    return heir
