"""Promises about named holds: while one stands nothing is fetched, and nothing is spent."""

from __future__ import annotations

import pytest

from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.queue_handlers import Busy, Recorder
from crewlet.testing.contracts.queue_harness import QueueHarness, event

__all__ = ["Holds"]


class Holds(Contract):
    """Reasons not to fetch, each by its name."""

    @pytest.mark.spec("E-081")
    async def test_held_mail_keeps_its_order_and_its_whole_budget(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.subscribe(queue.inbox(), handler)
        await client.hold(queue.inbox(), "sandbox")
        for number in range(3):
            await client.publish(queue.inbox().topic, event(f"m{number}"))
        await queue.quiet()
        while_held = ([*handler.ids], await queue.held(queue.inbox()), await queue.retained(queue.inbox().topic))
        await queue.disturb()

        await client.lift(queue.inbox(), "sandbox")

        await handler.handled(3)
        assert while_held == ([], 0, 3)
        assert handler.ids == ["m0", "m1", "m2"]
        assert handler.headrooms == [queue.config.max_deliver - 1] * 3

    @pytest.mark.spec("E-080")
    async def test_lifting_one_hold_leaves_the_others_in_force(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.subscribe(queue.inbox(), handler)
        await client.hold(queue.inbox(), "sandbox")
        await client.hold(queue.inbox(), "pause")
        await client.publish(queue.inbox().topic, event("m1"))

        await client.lift(queue.inbox(), "sandbox")
        await queue.quiet()
        after_one = [*handler.ids]
        await client.lift(queue.inbox(), "pause")

        await handler.handled(1)
        assert after_one == []

    async def test_a_hold_taken_twice_is_lifted_once(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.subscribe(queue.inbox(), handler)
        await client.hold(queue.inbox(), "pause")
        await client.hold(queue.inbox(), "pause")
        await client.publish(queue.inbox().topic, event("m1"))

        await client.lift(queue.inbox(), "pause")

        await handler.handled(1)

    async def test_lifting_what_does_not_stand_changes_nothing(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.lift(queue.inbox(), "pause")
        await client.subscribe(queue.inbox(), handler)
        await client.hold(queue.inbox(), "sandbox")
        await client.publish(queue.inbox().topic, event("m1"))

        await client.lift(queue.inbox(), "pause")
        await queue.quiet()

        assert handler.ids == []

    async def test_a_hold_taken_before_the_attach_is_in_force_from_its_first_moment(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.ensure_subscription(queue.inbox())
        await client.publish(queue.inbox().topic, event("m1"))

        await client.hold(queue.inbox(), "sandbox")
        await client.subscribe(queue.inbox(), handler)
        await queue.quiet()
        while_held = ([*handler.ids], await queue.held(queue.inbox()))
        await client.lift(queue.inbox(), "sandbox")

        await handler.handled(1)
        assert while_held == ([], 0)
        assert handler.headrooms == [queue.config.max_deliver - 1]

    @pytest.mark.spec("E-080")
    async def test_a_detach_drops_every_hold(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.subscribe(queue.inbox(), Recorder())
        await client.hold(queue.inbox(), "sandbox")
        await client.hold(queue.inbox(), "pause")
        await client.publish(queue.inbox().topic, event("m1"))

        await client.detach(queue.inbox())
        await client.subscribe(queue.inbox(), handler)

        await handler.handled(1)

    @pytest.mark.spec("E-080")
    async def test_a_hold_is_this_attachments_alone(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        held, free = Recorder(), Recorder()
        await first.subscribe(queue.inbox(), held)
        await first.hold(queue.inbox(), "pause")
        await second.subscribe(queue.inbox(), free)

        await first.publish(queue.inbox().topic, event("m1"))

        await free.handled(1)
        assert held.ids == []

    async def test_an_unquiesce_lifts_no_hold_and_a_lift_no_quiesce(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.subscribe(queue.inbox(), handler)
        await client.quiesce(queue.inbox())
        await client.hold(queue.inbox(), "pause")
        await client.publish(queue.inbox().topic, event("m1"))

        await client.unquiesce(queue.inbox())
        await queue.quiet()
        after_unquiesce = [*handler.ids]
        await client.quiesce(queue.inbox())
        await client.lift(queue.inbox(), "pause")
        await queue.quiet()
        after_lift = [*handler.ids]
        await client.unquiesce(queue.inbox())

        await handler.handled(1)
        assert (after_unquiesce, after_lift) == ([], [])

    async def test_a_running_handler_goes_on_under_a_hold(self, queue: QueueHarness) -> None:
        client, busy = await queue.client(), Busy()
        await client.subscribe(queue.inbox(), busy)
        await client.publish(queue.inbox().topic, event("m1"))
        await client.publish(queue.inbox().topic, event("m2"))
        await busy.at_work()

        await client.hold(queue.inbox(), "pause")
        busy.release.set()
        await client.wait_idle(queue.inbox())

        await queue.quiet()
        assert busy.ids == ["m1"]
        assert await queue.retained(queue.inbox().topic) == 1
