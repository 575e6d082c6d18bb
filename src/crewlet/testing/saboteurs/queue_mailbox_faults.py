"""Saboteurs of mailboxes: what is kept, for whom, from when, and what is told of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from crewlet.events import Event
from crewlet.queue import Ack, Delivery, Handler, MailboxState, Outcome, Subscription
from crewlet.testing.contracts import Mailboxes, MailboxListing, MailboxStates
from crewlet.testing.saboteurs.queue_saboteur import OutcomeFault, QueueSaboteur

__all__ = ["MAILBOX_FAULTS"]


class MailboxesBeginWithTheirReader(QueueSaboteur):
    """A mailbox exists from its first attachment on."""

    caught_by = Mailboxes.test_mail_for_a_mailbox_that_nobody_works_waits

    async def ensure_subscription(self, subscription: Subscription) -> None: ...


class MailboxesBeginNow(OutcomeFault):
    """A mailbox gets only what is published after it was made."""

    caught_by = Mailboxes.test_a_mailbox_begins_with_the_first_message_that_is_there

    async def publish(self, topic: str, event: Event) -> Event:
        self.shared.published.append((topic, event))
        return await self.twin.publish(topic, event)

    async def ensure_subscription(self, subscription: Subscription) -> None:
        known = await self.twin.list_subscriptions(subscription.topic)
        if self.shared.published and subscription not in known:
            return
        await self.twin.ensure_subscription(subscription)

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        before = {event.id for topic, event in self.shared.published if topic == subscription.topic}
        known = subscription in await self.twin.list_subscriptions(subscription.topic)

        async def between(delivery: Delivery) -> Outcome:
            if not known and delivery.event.id in before:
                return Ack()
            return await handler(delivery)

        await self.twin.subscribe(subscription, between)


class CreatingAgainEmpties(QueueSaboteur):
    """Creating a mailbox that is there makes it anew."""

    caught_by = Mailboxes.test_creating_it_again_changes_nothing

    async def ensure_subscription(self, subscription: Subscription) -> None:
        await self.twin.delete_subscription(subscription)
        await self.twin.ensure_subscription(subscription)


class OneFailsAll(QueueSaboteur):
    """Where one mailbox is there already, none of the others is made."""

    caught_by = Mailboxes.test_many_are_made_at_once_and_those_that_are_there_stay_as_they_are

    async def ensure_subscriptions(self, subscriptions: Collection[Subscription]) -> None:
        states = [await self.twin.mailbox(each) for each in subscriptions]
        if not any(states):
            await self.twin.ensure_subscriptions(subscriptions)


class TheFirstAckSettles(QueueSaboteur):
    """One group's acknowledgement takes the message from the others."""

    caught_by = Mailboxes.test_a_message_is_kept_until_the_last_group_has_acknowledged_it

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        async def between(delivery: Delivery) -> Outcome:
            outcome = await handler(delivery)
            for other in await self.twin.list_subscriptions(subscription.topic):
                if other != subscription:
                    await self.twin.delete_subscription(other)
            return outcome

        await self.twin.subscribe(subscription, between)


class DeletingDetaches(QueueSaboteur):
    """The mailbox survives its deletion."""

    caught_by = Mailboxes.test_a_mailbox_is_destroyed_from_where_it_is_attached

    async def delete_subscription(self, subscription: Subscription) -> None:
        await self.twin.detach(subscription)


class DeletingNeedsAnAttachment(QueueSaboteur):
    """Only who is attached can destroy a mailbox."""

    caught_by = Mailboxes.test_a_mailbox_is_destroyed_with_its_mail_from_where_nobody_is_attached

    async def delete_subscription(self, subscription: Subscription) -> None:
        state = await self.twin.mailbox(subscription)
        if state is not None and state.attached_here:
            await self.twin.delete_subscription(subscription)


class DeletingTheAbsentFails(QueueSaboteur):
    """Deleting what is not there is an error."""

    caught_by = Mailboxes.test_destroying_what_is_not_there_is_harmless

    async def delete_subscription(self, subscription: Subscription) -> None:
        assert await self.twin.mailbox(subscription) is not None, "there is no such mailbox"
        await self.twin.delete_subscription(subscription)


class DeletingTakesTheTopic(QueueSaboteur):
    """Every group of the topic goes with one."""

    caught_by = Mailboxes.test_destroying_one_groups_mailbox_leaves_the_others_mail

    async def delete_subscription(self, subscription: Subscription) -> None:
        for each in await self.twin.list_subscriptions(subscription.topic):
            await self.twin.delete_subscription(each)


class ListsWhatIsAttachedHere(QueueSaboteur):
    """Only this process's mailboxes are listed."""

    caught_by = MailboxListing.test_every_mailbox_under_a_pattern_is_listed_as_the_exact_pair

    async def list_subscriptions(self, pattern: str) -> list[Subscription]:
        found = await self.twin.list_subscriptions(pattern)
        states = [await self.twin.mailbox(each) for each in found]
        return [state.subscription for state in states if state is not None and state.attached_here]


class ListsRewrittenNames(QueueSaboteur):
    """The group is listed as the broker spells it."""

    caught_by = MailboxListing.test_every_mailbox_under_a_pattern_is_listed_as_the_exact_pair

    async def list_subscriptions(self, pattern: str) -> list[Subscription]:
        found = await self.twin.list_subscriptions(pattern)
        return [Subscription(each.topic, each.group.replace(".", "_").replace(" ", "_")) for each in found]


class ListsEverything(QueueSaboteur):
    """The pattern is not looked at."""

    caught_by = MailboxListing.test_a_pattern_lists_what_it_covers_and_no_more

    async def list_subscriptions(self, pattern: str) -> list[Subscription]:
        return await self.twin.list_subscriptions(">")


class ListsForget(QueueSaboteur):
    """A mailbox leaves the list with its creator."""

    caught_by = MailboxListing.test_a_mailbox_outlives_its_creator_on_the_list_until_it_is_destroyed

    async def ensure_subscription(self, subscription: Subscription) -> None:
        self.shared.names.add((subscription, self.twin.node))
        await self.twin.ensure_subscription(subscription)

    async def list_subscriptions(self, pattern: str) -> list[Subscription]:
        own = {subscription for subscription, node in self.shared.names if node == self.twin.node}
        return [each for each in await self.twin.list_subscriptions(pattern) if each in own]


class AbsentMailboxesAreEmpty(QueueSaboteur):
    """A mailbox that is not there is told as an empty one."""

    caught_by = MailboxStates.test_of_a_mailbox_that_is_not_there_nothing_is_told

    async def mailbox(self, subscription: Subscription) -> MailboxState | None:
        await self.twin.ensure_subscription(subscription)
        return await self.twin.mailbox(subscription)


class HeldCountsAsWaiting(QueueSaboteur):
    """Waiting and held mail are one number."""

    caught_by = MailboxStates.test_waiting_and_held_mail_are_told_apart

    async def mailbox(self, subscription: Subscription) -> MailboxState | None:
        state = await self.twin.mailbox(subscription)
        return state and replace(state, pending=state.pending + state.held, held=0)


class NobodyEverAsks(QueueSaboteur):
    """Whoever waits for mail is not counted."""

    caught_by = MailboxStates.test_an_empty_mailbox_has_no_oldest_and_says_who_asks

    async def mailbox(self, subscription: Subscription) -> MailboxState | None:
        state = await self.twin.mailbox(subscription)
        return state and replace(state, waiting_pulls=0)


MAILBOX_FAULTS: tuple[type[QueueSaboteur], ...] = (
    MailboxesBeginWithTheirReader,
    MailboxesBeginNow,
    CreatingAgainEmpties,
    OneFailsAll,
    TheFirstAckSettles,
    DeletingDetaches,
    DeletingNeedsAnAttachment,
    DeletingTheAbsentFails,
    DeletingTakesTheTopic,
    ListsWhatIsAttachedHere,
    ListsRewrittenNames,
    ListsEverything,
    ListsForget,
    AbsentMailboxesAreEmpty,
    HeldCountsAsWaiting,
    NobodyEverAsks,
)
