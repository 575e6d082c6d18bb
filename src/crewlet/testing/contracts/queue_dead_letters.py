"""Promises about the end of a message's budget: one copy apart, and a handler that always knows how much is left."""

from __future__ import annotations

import pytest

from crewlet.events import decode
from crewlet.queue import Defer, Nak, Outcome, Subscription
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.queue_handlers import Recorder
from crewlet.testing.contracts.queue_harness import QueueHarness, event
from crewlet.testing.waiting import wait_until

__all__ = ["DeadLetters", "Headroom"]


async def buried(queue: QueueHarness, subscription: Subscription, count: int = 1) -> None:
    """Return once so many copies are among the dead letters and the mailbox is empty."""

    async def there() -> bool:
        return len(await queue.dead_letters(subscription)) == count and await queue.retained(subscription.topic) == 0

    await wait_until(there, what=f"{count} dead letters and an empty {subscription.topic}")


class DeadLetters(Contract):
    """What becomes of poison."""

    @pytest.mark.spec("E-039")
    async def test_a_failure_of_the_last_delivery_leaves_one_copy_and_nothing_else(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(*[Nak("no such tool")] * 10)
        await client.subscribe(queue.inbox(), handler)

        stamped = await client.publish(queue.inbox().topic, event("m1", text="hello"))

        await buried(queue, queue.inbox())
        await queue.quiet()
        letters = await queue.dead_letters(queue.inbox())
        assert handler.ids == ["m1"] * queue.config.max_deliver
        assert [decode(letter.payload) for letter in letters] == [stamped]
        assert (letters[0].topic, letters[0].group) == (queue.inbox().topic, queue.inbox().group)
        assert letters[0].deliveries == queue.config.max_deliver

    @pytest.mark.spec("E-039", "E-041")
    async def test_a_deferral_of_the_last_delivery_leaves_one_copy_too(self, queue: QueueHarness) -> None:
        outcomes: list[Outcome | Exception] = [*[Nak()] * (queue.config.max_deliver - 1), Defer("the lease moved")]
        client, handler = await queue.client(), Recorder(*outcomes)
        await client.subscribe(queue.inbox(), handler)

        await client.publish(queue.inbox().topic, event("m1"))

        await buried(queue, queue.inbox())
        assert len(handler.ids) == queue.config.max_deliver

    @pytest.mark.spec("E-041")
    async def test_hand_overs_spend_the_same_budget_as_failures(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(*[Defer("the lease moved")] * queue.config.max_deliver)
        await client.subscribe(queue.inbox(), handler)
        await client.publish(queue.inbox().topic, event("m1"))

        for number in range(1, queue.config.max_deliver):
            await handler.handled(number)
            await client.wait_idle(queue.inbox())
            await client.unquiesce(queue.inbox())

        await buried(queue, queue.inbox())
        assert len(handler.ids) == queue.config.max_deliver

    async def test_a_success_on_the_last_delivery_leaves_no_copy(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(*[Nak()] * (queue.config.max_deliver - 1))
        await client.subscribe(queue.inbox(), handler)

        await client.publish(queue.inbox().topic, event("m1"))

        await queue.emptied(queue.inbox())
        assert handler.headrooms[-1] == 0
        assert await queue.dead_letters(queue.inbox()) == []

    async def test_poison_of_one_group_is_not_another_groups(self, queue: QueueHarness) -> None:
        client, second_group = await queue.client(), Subscription(queue.inbox().topic, "audit")
        poisoned, auditor = Recorder(*[Nak()] * 10), Recorder()
        await client.subscribe(queue.inbox(), poisoned)
        await client.subscribe(second_group, auditor)

        await client.publish(queue.inbox().topic, event("m1"))

        await buried(queue, queue.inbox())
        assert auditor.ids == ["m1"]
        assert await queue.dead_letters(second_group) == []

    async def test_what_is_no_event_is_buried_at_once_and_holds_nobody_up(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.ensure_subscription(queue.inbox())
        await queue.publish_raw(queue.inbox().topic, b"no event at all")
        await client.publish(queue.inbox().topic, event("m1"))

        await client.subscribe(queue.inbox(), handler)

        await handler.handled(1)
        await buried(queue, queue.inbox())
        letters = await queue.dead_letters(queue.inbox())
        assert handler.ids == ["m1"]
        assert [letter.payload for letter in letters] == [b"no event at all"]

    async def test_mail_behind_poison_is_worked(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(*[Nak()] * 3)
        await client.ensure_subscription(queue.inbox())
        for number in range(3):
            await client.publish(queue.inbox().topic, event(f"m{number}"))
        await queue.disturb()

        await client.subscribe(queue.inbox(), handler)

        await queue.emptied(queue.inbox())
        assert sorted(handler.ids) == ["m0", "m0", "m1", "m1", "m2", "m2"]
        assert await queue.dead_letters(queue.inbox()) == []


class Headroom(Contract):
    """What a handler is told about the budget."""

    @pytest.mark.spec("E-043")
    async def test_it_counts_down_to_zero_on_the_last_delivery(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(*[Nak()] * 10)
        await client.subscribe(queue.inbox(), handler)

        await client.publish(queue.inbox().topic, event("m1"))

        await handler.handled(queue.config.max_deliver)
        assert handler.headrooms == [*reversed(range(queue.config.max_deliver))]

    @pytest.mark.spec("E-043", "E-041")
    async def test_it_travels_with_the_message_to_a_successor(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        leaver, successor = Recorder(Nak(), Defer("the lease moved")), Recorder()
        await first.subscribe(queue.inbox(), leaver)
        await first.publish(queue.inbox().topic, event("m1"))
        await leaver.handled(2)
        await first.wait_idle(queue.inbox())
        await first.detach(queue.inbox())
        await queue.disturb()

        await second.subscribe(queue.inbox(), successor)

        await successor.handled(1)
        assert leaver.headrooms + successor.headrooms == [queue.config.max_deliver - spent for spent in (1, 2, 3)]

    @pytest.mark.spec("E-043")
    async def test_each_message_has_its_own(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(Nak())
        await client.ensure_subscription(queue.inbox())
        await client.publish(queue.inbox().topic, event("m1"))
        await client.publish(queue.inbox().topic, event("m2"))

        await client.subscribe(queue.inbox(), handler)

        await handler.handled(3)
        await client.publish(queue.inbox().topic, event("m3"))
        await handler.handled(4)
        whole = queue.config.max_deliver - 1
        told = [*zip(handler.ids, handler.headrooms, strict=True)]
        assert told == [("m1", whole), ("m2", whole), ("m1", whole - 1), ("m3", whole)]
