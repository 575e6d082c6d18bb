"""Promises about letting go: quiesce, unquiesce, detach, close, named holds, and what a dead holder left behind."""

from __future__ import annotations

import pytest

from crewlet.queue import Ack, Defer, Nak
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.queue_dead_letters import buried
from crewlet.testing.contracts.queue_handlers import Busy, Recorder
from crewlet.testing.contracts.queue_harness import QueueHarness, event

__all__ = ["LettingGo", "TakeOver"]


class LettingGo(Contract):
    """The verbs by which a process stops working a mailbox."""

    @pytest.mark.spec("E-026", "E-093")
    async def test_a_quiesced_attachment_asks_for_nothing_and_withholds_nothing(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        quiet, other = Recorder(), Recorder()
        await first.subscribe(queue.inbox(), quiet)
        await first.quiesce(queue.inbox())
        await first.publish(queue.inbox().topic, event("m1"))
        await queue.quiet()
        held = await queue.held(queue.inbox())

        await second.subscribe(queue.inbox(), other)

        await other.handled(1)
        assert (held, quiet.ids, other.headrooms) == (0, [], [queue.config.max_deliver - 1])

    @pytest.mark.spec("E-093")
    async def test_unquiesce_fetches_what_came_meanwhile_at_no_cost(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.subscribe(queue.inbox(), handler)
        await client.quiesce(queue.inbox())
        await client.publish(queue.inbox().topic, event("m1"))
        await queue.disturb()
        await client.publish(queue.inbox().topic, event("m2"))

        await client.unquiesce(queue.inbox())

        await handler.handled(2)
        assert handler.ids == ["m1", "m2"]
        assert handler.headrooms == [queue.config.max_deliver - 1] * 2

    @pytest.mark.spec("E-093")
    async def test_a_quiesce_leaves_the_running_handler_its_outcome(self, queue: QueueHarness) -> None:
        client, busy = await queue.client(), Busy()
        await client.subscribe(queue.inbox(), busy)
        await client.publish(queue.inbox().topic, event("m1"))
        await client.publish(queue.inbox().topic, event("m2"))
        await busy.at_work()

        await client.quiesce(queue.inbox())
        busy.release.set()
        await client.wait_idle(queue.inbox())

        await queue.quiet()
        assert busy.ids == ["m1"]
        assert await queue.retained(queue.inbox().topic) == 1

    async def test_the_verbs_are_harmless_where_nothing_is_attached(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()

        await client.quiesce(queue.inbox())
        await client.unquiesce(queue.inbox())
        await client.wait_idle(queue.inbox())
        await client.detach(queue.inbox())

        await client.subscribe(queue.inbox(), handler)
        await client.publish(queue.inbox().topic, event("m1"))
        await handler.handled(1)

    @pytest.mark.spec("E-009", "E-093")
    async def test_a_detach_leaves_the_mailbox_its_place_and_its_mail(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        leaver, successor = Recorder(), Recorder()
        await first.subscribe(queue.inbox(), leaver)
        await first.publish(queue.inbox().topic, event("m1"))
        await queue.emptied(queue.inbox())

        await first.detach(queue.inbox())
        await first.publish(queue.inbox().topic, event("m2"))
        await queue.quiet()
        kept = await queue.retained(queue.inbox().topic)
        await second.subscribe(queue.inbox(), successor)

        await successor.handled(1)
        assert (kept, leaver.ids, successor.ids) == (1, ["m1"], ["m2"])
        assert successor.headrooms == [queue.config.max_deliver - 1]

    @pytest.mark.spec("E-093")
    async def test_a_detached_handlers_outcome_is_not_reported(self, queue: QueueHarness) -> None:
        client, busy = await queue.client(), Busy(Ack())
        await client.subscribe(queue.inbox(), busy)
        await client.publish(queue.inbox().topic, event("m1"))
        await busy.at_work()

        await client.detach(queue.inbox())
        finished_by_then = busy.finished
        busy.release.set()
        await queue.quiet()

        assert (finished_by_then, busy.finished) == (0, 1)
        assert (await queue.held(queue.inbox()), await queue.retained(queue.inbox().topic)) == (1, 1)

    async def test_after_a_detach_the_same_process_may_attach_again(self, queue: QueueHarness) -> None:
        client, before, after = await queue.client(), Recorder(), Recorder()
        await client.subscribe(queue.inbox(), before)
        await client.detach(queue.inbox())

        await client.subscribe(queue.inbox(), after)
        await client.publish(queue.inbox().topic, event("m1"))

        await after.handled(1)
        assert before.ids == []

    @pytest.mark.spec("E-009", "E-157")
    async def test_a_closed_client_works_nothing_and_its_mailboxes_stay(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        closed, successor = Recorder(), Recorder()
        await first.subscribe(queue.inbox(), closed)

        await first.close()
        await second.publish(queue.inbox().topic, event("m1"))
        await queue.quiet()
        await second.subscribe(queue.inbox(), successor)

        await successor.handled(1)
        assert closed.ids == []

    async def test_wait_idle_returns_after_the_outcome_was_reported(self, queue: QueueHarness) -> None:
        client, busy = await queue.client(), Busy()
        await client.subscribe(queue.inbox(), busy)
        await client.publish(queue.inbox().topic, event("m1"))
        await busy.at_work()
        busy.release.set()

        await client.wait_idle(queue.inbox())

        assert (busy.finished, await queue.held(queue.inbox())) == (1, 0)
        await queue.emptied(queue.inbox())


class TakeOver(Contract):
    """What the next holder of a seat finds, and how soon."""

    @pytest.mark.spec("E-009")
    async def test_what_a_dead_holder_had_comes_back_at_once_and_first(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        busy, successor = Busy(), Recorder()
        await first.subscribe(queue.inbox(), busy)
        for number in range(3):
            await first.publish(queue.inbox().topic, event(f"m{number}"))
        await busy.at_work()
        await queue.crash(first)
        await queue.disturb()

        started_at_s = queue.now_s()
        await second.release_held(queue.inbox())
        await second.subscribe(queue.inbox(), successor)
        await successor.handled(3)

        assert successor.ids == ["m0", "m1", "m2"]
        assert successor.started_at_s[0] - started_at_s < queue.config.ack_wait_s / 2

    async def test_a_release_costs_what_was_held_one_delivery_and_the_rest_none(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        busy, successor = Busy(), Recorder()
        await first.subscribe(queue.inbox(), busy)
        await first.publish(queue.inbox().topic, event("held"))
        await first.publish(queue.inbox().topic, event("waiting"))
        await busy.at_work()
        await queue.crash(first)

        await second.release_held(queue.inbox())
        await second.subscribe(queue.inbox(), successor)

        await successor.handled(2)
        assert successor.ids == ["held", "waiting"]
        assert successor.headrooms == [queue.config.max_deliver - 2, queue.config.max_deliver - 1]

    async def test_releasing_where_nothing_is_held_changes_nothing(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.ensure_subscription(queue.inbox())
        await client.publish(queue.inbox().topic, event("m1"))

        await client.release_held(queue.inbox())
        await client.subscribe(queue.inbox(), handler)

        await handler.handled(1)
        assert handler.headrooms == [queue.config.max_deliver - 1]

    async def test_after_a_release_the_ack_clock_is_what_it_was(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        dead, busy = Busy(), Busy()
        await first.subscribe(queue.inbox(), dead)
        await first.publish(queue.inbox().topic, event("m1"))
        await dead.at_work()
        await queue.crash(first)
        await second.release_held(queue.inbox())

        await second.subscribe(queue.inbox(), busy)
        await busy.at_work()
        await queue.advance(queue.config.ack_wait_s / 4)

        assert (await queue.held(queue.inbox()), busy.ids) == (1, ["m1"])
        busy.release.set()
        await queue.emptied(queue.inbox())
        assert busy.ids == ["m1"]

    async def test_a_released_message_may_be_on_its_last_delivery(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        spending = Recorder(*[Nak()] * (queue.config.max_deliver - 3), Defer("the lease moved"))
        busy, heir = Busy(), Recorder()
        await first.subscribe(queue.inbox(), spending)
        await first.publish(queue.inbox().topic, event("m1"))
        await spending.handled(queue.config.max_deliver - 2)
        await first.wait_idle(queue.inbox())
        await first.detach(queue.inbox())
        await first.subscribe(queue.inbox(), busy)
        await busy.at_work()
        await queue.crash(first)

        await second.release_held(queue.inbox())
        await second.subscribe(queue.inbox(), heir)

        await heir.handled(1)
        assert heir.headrooms == [0]
        await queue.emptied(queue.inbox())

    async def test_what_a_holder_had_on_its_last_delivery_when_it_died_becomes_a_dead_letter(
        self, queue: QueueHarness
    ) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        busy, heir = Busy(), Recorder()
        spending = Recorder(*[Nak()] * (queue.config.max_deliver - 2), Defer("the lease moved"))
        await first.subscribe(queue.inbox(), spending)
        await first.publish(queue.inbox().topic, event("m1"))
        await spending.handled(queue.config.max_deliver - 1)
        await first.wait_idle(queue.inbox())
        await first.detach(queue.inbox())
        await first.subscribe(queue.inbox(), busy)
        await busy.at_work()
        await queue.crash(first)

        await second.release_held(queue.inbox())
        await second.subscribe(queue.inbox(), heir)

        await buried(queue, queue.inbox())
        assert heir.ids == []
