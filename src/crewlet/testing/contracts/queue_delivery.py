"""Promises about delivery: the order in which mail is served, and what a handler's outcome does to its message."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import cast

import pytest

from crewlet.queue import Ack, Defer, Delivery, Nak, Outcome
from crewlet.testing.contracts.contract import Capability, Contract, needs
from crewlet.testing.contracts.queue_handlers import Busy, Recorder
from crewlet.testing.contracts.queue_harness import QueueHarness, event

__all__ = ["Outcomes", "ServingOrder"]


class ServingOrder(Contract):
    """Who is served what, and when."""

    async def test_mail_is_served_in_the_order_in_which_it_was_published(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.ensure_subscription(queue.inbox())
        for number in range(5):
            await client.publish(queue.inbox().topic, event(f"m{number}"))

        await client.subscribe(queue.inbox(), handler)

        await handler.handled(5)
        assert handler.ids == ["m0", "m1", "m2", "m3", "m4"]

    @pytest.mark.spec("E-026")
    async def test_nothing_is_fetched_while_a_handler_works(self, queue: QueueHarness) -> None:
        client, busy = await queue.client(), Busy()
        await client.subscribe(queue.inbox(), busy)
        for number in range(3):
            await client.publish(queue.inbox().topic, event(f"m{number}"))
        await busy.at_work()
        await queue.quiet()

        held = await queue.held(queue.inbox())

        assert (held, busy.ids) == (1, ["m0"])
        busy.release.set()
        await queue.emptied(queue.inbox())
        assert busy.finished == 3

    @pytest.mark.spec("E-026")
    async def test_two_attachments_of_one_group_share_the_mail(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        busy, other = Busy(), Recorder()
        await first.subscribe(queue.inbox(), busy)
        await first.publish(queue.inbox().topic, event("m1"))
        await busy.at_work()
        await second.subscribe(queue.inbox(), other)

        await first.publish(queue.inbox().topic, event("m2"))

        await other.handled(1)
        busy.release.set()
        await queue.emptied(queue.inbox())
        assert (busy.ids, other.ids) == (["m1"], ["m2"])

    @pytest.mark.spec("E-034")
    async def test_a_failure_comes_back_behind_the_mail_that_was_waiting(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(Nak("the provider is down"))
        await client.ensure_subscription(queue.inbox())
        for number in range(3):
            await client.publish(queue.inbox().topic, event(f"m{number}"))
        await queue.disturb()

        await client.subscribe(queue.inbox(), handler)

        await handler.handled(4)
        assert handler.ids == ["m0", "m1", "m2", "m0"]

    @needs(Capability.TIMED_BACKOFF)
    @pytest.mark.spec("E-033")
    async def test_the_pause_after_a_failure_doubles_up_to_its_bound(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(Nak(), Nak(), Nak())
        await client.subscribe(queue.inbox(), handler)

        await client.publish(queue.inbox().topic, event("m1"))

        await handler.handled(4)
        times = handler.started_at_s
        gaps = [later - sooner for sooner, later in pairwise(times)]
        assert all(gap >= pause * 0.9 for gap, pause in zip(gaps, [0.1, 0.2, 0.4], strict=True)), gaps
        assert sum(gaps) < 0.7 + 1.5

    @pytest.mark.spec("E-036")
    async def test_a_deferral_is_first_in_line_for_the_successor(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        leaver, successor = Recorder(Defer("the lease moved")), Recorder()
        await first.ensure_subscription(queue.inbox())
        for number in range(3):
            await first.publish(queue.inbox().topic, event(f"m{number}"))
        await first.subscribe(queue.inbox(), leaver)
        await leaver.handled(1)
        await first.wait_idle(queue.inbox())

        await second.subscribe(queue.inbox(), successor)

        await successor.handled(3)
        assert (leaver.ids, successor.ids) == (["m0"], ["m0", "m1", "m2"])

    async def test_a_deferral_is_handed_over_at_once(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        busy, successor = Busy(Defer("the lease moved")), Recorder()
        await first.subscribe(queue.inbox(), busy)
        await first.publish(queue.inbox().topic, event("m1"))
        await busy.at_work()
        await second.subscribe(queue.inbox(), successor)

        released_at_s = queue.now_s()
        busy.release.set()
        await successor.handled(1)

        assert successor.started_at_s[0] - released_at_s < queue.config.ack_wait_s / 4

    @needs(Capability.ACK_CLOCK)
    @pytest.mark.spec("E-038", "S-163")
    async def test_what_a_dead_holder_had_is_nobody_elses_until_its_clock_runs_out(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        busy, handler = Busy(), Recorder()
        await first.subscribe(queue.inbox(), busy)
        await first.publish(queue.inbox().topic, event("m1"))
        await busy.at_work()
        await queue.crash(first)
        await second.subscribe(queue.inbox(), handler)
        await second.publish(queue.inbox().topic, event("m2"))

        await queue.advance(queue.config.ack_wait_s / 2)
        seen_before = [*handler.ids]
        await queue.advance(queue.config.ack_wait_s / 2)

        await handler.handled(2)
        assert (seen_before, handler.ids) == (["m2"], ["m2", "m1"])

    @needs(Capability.ACK_CLOCK)
    async def test_a_handler_that_outlasts_the_ack_clock_keeps_its_message(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        busy, other = Busy(), Recorder()
        await first.subscribe(queue.inbox(), busy)
        await first.publish(queue.inbox().topic, event("m1"))
        await busy.at_work()
        await second.subscribe(queue.inbox(), other)

        await queue.advance(1.5 * queue.config.ack_wait_s)
        await first.publish(queue.inbox().topic, event("m2"))

        await other.handled(1)
        assert other.ids == ["m2"]
        busy.release.set()
        await queue.emptied(queue.inbox())

    @needs(Capability.ACK_CLOCK)
    async def test_a_mailbox_with_a_clock_of_its_own_gives_back_by_that(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        busy, handler = Busy(), Recorder()
        await first.subscribe(queue.unguarded(), busy)
        await first.publish(queue.unguarded().topic, event("m1"))
        await busy.at_work()
        await queue.crash(first)
        crashed_at_s = queue.now_s()

        await second.subscribe(queue.unguarded(), handler)
        await queue.advance(queue.config.ack_wait_of(queue.unguarded()))

        await handler.handled(1)
        assert handler.started_at_s[0] - crashed_at_s < queue.config.ack_wait_s / 2

    @needs(Capability.ACK_CLOCK)
    async def test_a_handler_that_outlasts_a_clock_of_its_mailboxs_own_keeps_its_message(
        self, queue: QueueHarness
    ) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        busy, other = Busy(), Recorder()
        await first.subscribe(queue.unguarded(), busy)
        await first.publish(queue.unguarded().topic, event("m1"))
        await busy.at_work()
        await second.subscribe(queue.unguarded(), other)

        await queue.advance(1.5 * queue.config.ack_wait_of(queue.unguarded()))
        await first.publish(queue.unguarded().topic, event("m2"))

        await other.handled(1)
        assert other.ids == ["m2"]
        busy.release.set()
        await queue.emptied(queue.unguarded())


class Outcomes(Contract):
    """What becomes of a message that was handed over."""

    @pytest.mark.spec("E-032", "E-156")
    async def test_an_acknowledged_message_is_gone(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(Ack())
        await client.subscribe(queue.inbox(), handler)

        await client.publish(queue.inbox().topic, event("m1"))

        await queue.emptied(queue.inbox())
        await client.detach(queue.inbox())
        await client.subscribe(queue.inbox(), handler)
        await queue.quiet()
        assert handler.ids == ["m1"]

    @pytest.mark.spec("E-032")
    async def test_silence_acknowledges(self, queue: QueueHarness) -> None:
        client, handled = await queue.client(), Recorder()

        async def says_nothing(delivery: Delivery) -> Outcome:
            await handled(delivery)
            return cast("Outcome", None)

        await client.subscribe(queue.inbox(), says_nothing)
        await client.publish(queue.inbox().topic, event("m1"))

        await queue.emptied(queue.inbox())
        assert handled.ids == ["m1"]

    async def test_an_exception_is_a_failure(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(RuntimeError("no such tool"))
        await client.subscribe(queue.inbox(), handler)

        await client.publish(queue.inbox().topic, event("m1"))

        await handler.handled(2)
        assert handler.ids == ["m1", "m1"]
        assert handler.headrooms == [queue.config.max_deliver - 1, queue.config.max_deliver - 2]
        await queue.emptied(queue.inbox())

    async def test_a_cancellation_inside_the_handler_is_a_failure_of_that_message(self, queue: QueueHarness) -> None:
        client, attempts = await queue.client(), Recorder()

        async def cancelled_inside(delivery: Delivery) -> Outcome:
            outcome = await attempts(delivery)
            if len(attempts.ids) == 1:
                raise asyncio.CancelledError
            return outcome

        await client.subscribe(queue.inbox(), cancelled_inside)
        await client.publish(queue.inbox().topic, event("m1"))

        await queue.emptied(queue.inbox())
        assert attempts.ids == ["m1", "m1"]

    @pytest.mark.spec("E-036")
    async def test_a_deferral_stops_this_attachment(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(Defer("the lease moved"))
        await client.subscribe(queue.inbox(), handler)
        await client.publish(queue.inbox().topic, event("m1"))
        await handler.handled(1)

        await client.publish(queue.inbox().topic, event("m2"))
        await queue.quiet()

        assert handler.ids == ["m1"]
        assert await queue.retained(queue.inbox().topic) == 2

    @pytest.mark.spec("E-036")
    async def test_an_attachment_that_deferred_fetches_again_when_it_is_told_to(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(Defer("the store is gone"))
        await client.subscribe(queue.inbox(), handler)
        await client.publish(queue.inbox().topic, event("m1"))
        await client.publish(queue.inbox().topic, event("m2"))
        await handler.handled(1)
        await client.wait_idle(queue.inbox())

        await client.unquiesce(queue.inbox())

        await handler.handled(3)
        assert handler.ids == ["m1", "m1", "m2"]

    @pytest.mark.spec("E-037")
    async def test_a_deferral_is_the_same_message_and_no_copy(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder(Defer("the lease moved"))
        await client.subscribe(queue.inbox(), handler)
        await client.publish(queue.inbox().topic, event("m1", text="hello"))
        await handler.handled(1)
        await client.wait_idle(queue.inbox())

        retained = await queue.retained(queue.inbox().topic)
        await client.unquiesce(queue.inbox())

        await handler.handled(2)
        assert retained == 1
        assert handler.deliveries[1].event == handler.deliveries[0].event
        await queue.emptied(queue.inbox())

    async def test_a_second_attach_of_one_process_is_refused(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.subscribe(queue.inbox(), handler)

        with pytest.raises(ValueError, match="attached"):
            await client.subscribe(queue.inbox(), Recorder())

        await client.publish(queue.inbox().topic, event("m1"))
        await handler.handled(1)
