"""Promises about mailboxes: created detached, listed, told about, destroyed."""

from __future__ import annotations

import pytest

from crewlet import topics
from crewlet.queue import EventQueue, Subscription
from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.queue_handlers import Busy, Recorder
from crewlet.testing.contracts.queue_harness import QueueHarness, event
from crewlet.testing.waiting import wait_until

__all__ = ["MailboxListing", "MailboxStates", "Mailboxes"]


class Mailboxes(Contract):
    """What a mailbox keeps, from when, and until when."""

    @pytest.mark.spec("E-027", "E-054")
    async def test_mail_for_a_mailbox_that_nobody_works_waits(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.ensure_subscription(queue.inbox())
        await client.publish(queue.inbox().topic, event("m1"))
        await queue.disturb()
        await client.publish(queue.inbox().topic, event("m2"))

        await client.subscribe(queue.inbox(), handler)

        await handler.handled(2)
        assert handler.ids == ["m1", "m2"]

    @pytest.mark.spec("E-027")
    async def test_a_mailbox_begins_with_the_first_message_that_is_there(self, queue: QueueHarness) -> None:
        client, late = await queue.client(), Subscription(queue.inbox().topic, "audit")
        auditor = Recorder()
        await client.ensure_subscription(queue.inbox())
        await client.publish(queue.inbox().topic, event("m1"))

        await client.ensure_subscription(late)
        await client.subscribe(late, auditor)

        await auditor.handled(1)
        assert auditor.ids == ["m1"]

    async def test_creating_it_again_changes_nothing(self, queue: QueueHarness) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        busy = Busy()
        await first.subscribe(queue.inbox(), busy)
        await first.publish(queue.inbox().topic, event("m1"))
        await first.publish(queue.inbox().topic, event("m2"))
        await busy.at_work()

        await second.ensure_subscription(queue.inbox())

        assert (await queue.held(queue.inbox()), await queue.retained(queue.inbox().topic)) == (1, 2)
        busy.release.set()
        await queue.emptied(queue.inbox())
        assert busy.ids == ["m1", "m2"]

    @pytest.mark.spec("E-027")
    async def test_many_are_made_at_once_and_those_that_are_there_stay_as_they_are(self, queue: QueueHarness) -> None:
        client, seats = await queue.client(), [queue.inbox(f"seat{number}") for number in range(12)]
        await client.ensure_subscription(seats[0])
        await client.publish(seats[0].topic, event("before"))

        await client.ensure_subscriptions(seats)
        for seat in seats:
            await client.publish(seat.topic, event("after"))

        assert [await queue.retained(seat.topic) for seat in seats] == [2, *[1] * 11]

    @pytest.mark.spec("E-020")
    async def test_a_message_is_kept_until_the_last_group_has_acknowledged_it(self, queue: QueueHarness) -> None:
        client, second_group = await queue.client(), Subscription(queue.inbox().topic, "audit")
        await client.ensure_subscription(second_group)
        handler, auditor = Recorder(), Recorder()
        await client.subscribe(queue.inbox(), handler)
        await client.publish(queue.inbox().topic, event("m1"))
        await handler.handled(1)
        await client.wait_idle(queue.inbox())

        kept = await queue.retained(queue.inbox().topic)
        await client.subscribe(second_group, auditor)

        await queue.emptied(queue.inbox())
        assert (kept, auditor.ids) == (1, ["m1"])

    @pytest.mark.spec("E-093", "E-095")
    async def test_a_mailbox_is_destroyed_with_its_mail_from_where_nobody_is_attached(
        self, queue: QueueHarness
    ) -> None:
        first, second = await queue.client("first"), await queue.client("second")
        handler = Recorder()
        await first.ensure_subscription(queue.inbox())
        await first.publish(queue.inbox().topic, event("m1"))

        await second.delete_subscription(queue.inbox())

        await queue.emptied(queue.inbox())
        await first.subscribe(queue.inbox(), handler)
        await first.publish(queue.inbox().topic, event("m2"))
        await handler.handled(1)
        assert handler.ids == ["m2"]

    @pytest.mark.spec("E-093")
    async def test_a_mailbox_is_destroyed_from_where_it_is_attached(self, queue: QueueHarness) -> None:
        client, handler = await queue.client(), Recorder()
        await client.subscribe(queue.inbox(), handler)

        await client.delete_subscription(queue.inbox())
        await client.publish(queue.inbox().topic, event("m1"))

        await queue.quiet()
        await queue.emptied(queue.inbox())
        assert handler.ids == []

    async def test_destroying_what_is_not_there_is_harmless(self, queue: QueueHarness) -> None:
        client = await queue.client()

        await client.delete_subscription(queue.inbox())

        assert await queue.retained(queue.inbox().topic) == 0

    async def test_destroying_one_groups_mailbox_leaves_the_others_mail(self, queue: QueueHarness) -> None:
        client, doomed = await queue.client(), Subscription(queue.inbox().topic, "audit")
        handler = Recorder()
        await client.ensure_subscription(queue.inbox())
        await client.ensure_subscription(doomed)
        await client.publish(queue.inbox().topic, event("m1"))

        await client.delete_subscription(doomed)

        await client.subscribe(queue.inbox(), handler)
        await handler.handled(1)


class MailboxListing(Contract):
    """How a mailbox is found after everything that knew its name has forgotten it."""

    @pytest.mark.spec("E-028")
    async def test_every_mailbox_under_a_pattern_is_listed_as_the_exact_pair(self, queue: QueueHarness) -> None:
        creator, asker = await queue.client("creator"), await queue.client("asker")
        attached, detached, odd = queue.inbox("ada"), queue.inbox("bob"), Subscription(queue.inbox().topic, "a.b c/d")
        await creator.subscribe(attached, Recorder())
        await creator.ensure_subscription(detached)
        await creator.ensure_subscription(odd)

        exact = await asker.list_subscriptions(attached.topic)
        below = await asker.list_subscriptions(topics.stream_subjects(topics.STREAM_AGENT))

        assert sorted(exact, key=repr) == sorted([attached, odd], key=repr)
        assert {attached, detached, odd} <= {*below}

    @pytest.mark.spec("E-028")
    async def test_a_pattern_lists_what_it_covers_and_no_more(self, queue: QueueHarness) -> None:
        client = await queue.client()
        await client.ensure_subscription(queue.inbox("ada"))
        seat, _, _ = queue.inbox("ada").topic.rpartition(".")

        matching = await client.list_subscriptions(f"{seat}.*")
        elsewhere = await client.list_subscriptions(f"{seat}.control")

        assert (matching, elsewhere) == ([queue.inbox("ada")], [])

    @pytest.mark.spec("E-028")
    async def test_a_mailbox_outlives_its_creator_on_the_list_until_it_is_destroyed(self, queue: QueueHarness) -> None:
        creator, asker = await queue.client("creator"), await queue.client("asker")
        await creator.ensure_subscription(queue.inbox())
        await queue.crash(creator)

        before = await asker.list_subscriptions(queue.inbox().topic)
        await asker.delete_subscription(queue.inbox())
        after = await asker.list_subscriptions(queue.inbox().topic)

        assert (before, after) == ([queue.inbox()], [])


class MailboxStates(Contract):
    """What can be learned of a mailbox."""

    async def test_of_a_mailbox_that_is_not_there_nothing_is_told(self, queue: QueueHarness) -> None:
        client = await queue.client()

        assert await client.mailbox(queue.inbox()) is None

    async def test_waiting_and_held_mail_are_told_apart(self, queue: QueueHarness) -> None:
        client, busy = await queue.client(), Busy()
        await client.subscribe(queue.inbox(), busy)
        for number in range(3):
            await client.publish(queue.inbox().topic, event(f"m{number}"))
        await busy.at_work()
        await queue.quiet()

        state = await client.mailbox(queue.inbox())

        assert state is not None
        assert (state.subscription, state.pending, state.held, state.attached_here) == (queue.inbox(), 2, 1, True)
        assert state.oldest is not None
        busy.release.set()
        await queue.emptied(queue.inbox())

    async def test_an_empty_mailbox_has_no_oldest_and_says_who_asks(self, queue: QueueHarness) -> None:
        worker, watcher = await queue.client("worker"), await queue.client("watcher")
        await worker.ensure_subscription(queue.inbox())
        before = await watcher.mailbox(queue.inbox())

        await worker.subscribe(queue.inbox(), Recorder())

        await wait_until(lambda: _asked(watcher, queue.inbox()), what="a waiting pull in the mailbox's state")
        after = await watcher.mailbox(queue.inbox())
        assert before is not None
        assert after is not None
        assert (before.waiting_pulls, before.oldest, before.pending, before.held) == (0, None, 0, 0)
        assert (after.waiting_pulls, after.attached_here) == (1, False)


async def _asked(client: EventQueue, subscription: Subscription) -> bool:
    state = await client.mailbox(subscription)
    return state is not None and state.waiting_pulls == 1
