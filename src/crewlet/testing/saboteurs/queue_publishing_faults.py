"""Saboteurs of publishing: what is stored, how often, for whom, and in whose name."""

from __future__ import annotations

from dataclasses import replace

from crewlet import topics
from crewlet.events import Event
from crewlet.queue import Delivery, Handler, Outcome, Subscription
from crewlet.testing.contracts import Outcomes, Publishing, ServingOrder
from crewlet.testing.saboteurs.queue_saboteur import QueueSaboteur

__all__ = ["PUBLISHING_FAULTS"]


class NodeIsLost(QueueSaboteur):
    """What is published names nobody."""

    caught_by = Publishing.test_the_event_arrives_with_the_publishing_node_on_it

    async def publish(self, topic: str, event: Event) -> Event:
        return await self.twin.publish(topic, replace(event, node="nobody"))


class NodeIsOverwritten(QueueSaboteur):
    """A relay puts its own name over the publisher's."""

    caught_by = Publishing.test_an_event_that_names_a_node_keeps_it

    async def publish(self, topic: str, event: Event) -> Event:
        return await self.twin.publish(topic, replace(event, node=self.twin.node))


class StampsTheOriginal(QueueSaboteur):
    """The publisher's own event is written to."""

    caught_by = Publishing.test_the_publishers_own_event_is_not_written_to

    async def publish(self, topic: str, event: Event) -> Event:
        object.__setattr__(event, "node", event.node or self.twin.node)
        await self.twin.publish(topic, event)
        return event


class UncoveredMailIsKept(QueueSaboteur):
    """A publish that no mailbox covers waits for one."""

    caught_by = Publishing.test_what_no_mailbox_covers_is_gone

    async def publish(self, topic: str, event: Event) -> Event:
        await self.twin.ensure_subscription(Subscription(topic, "keeps everything"))
        return await self.twin.publish(topic, event)


class RepeatsAreStored(QueueSaboteur):
    """The same event again is a message again."""

    caught_by = Publishing.test_one_event_twice_on_a_topic_is_stored_once

    async def publish(self, topic: str, event: Event) -> Event:
        repeats = sum(known == (topic, event) for known in self.shared.published)
        self.shared.published.append((topic, event))
        return await self.twin.publish(topic, replace(event, id=f"{event.id}-{repeats}") if repeats else event)


class PutBackIsARepeat(QueueSaboteur):
    """An event that was put back is the message that was there before."""

    caught_by = Publishing.test_what_is_put_back_is_a_message_of_its_own_once

    async def publish(self, topic: str, event: Event) -> Event:
        return await self.twin.publish(topic, replace(event, payload={}))


class RepeatsAreForgottenOnceWorked(QueueSaboteur):
    """The same event again is a message again where the first is gone."""

    caught_by = Publishing.test_a_repeat_after_the_first_was_worked_is_no_new_message

    async def publish(self, topic: str, event: Event) -> Event:
        states = [await self.twin.mailbox(each) for each in await self.twin.list_subscriptions(topic)]
        gone = (topic, event) in self.shared.published and not any(state and state.oldest for state in states)
        self.shared.published.append((topic, event))
        return await self.twin.publish(topic, replace(event, id=f"{event.id}-again") if gone else event)


class EventsAreKnownByIdAlone(QueueSaboteur):
    """One event on a second topic is taken for a repeat."""

    caught_by = Publishing.test_one_event_on_two_topics_is_two_messages

    async def publish(self, topic: str, event: Event) -> Event:
        if any(known.id == event.id for _, known in self.shared.published):
            return event
        self.shared.published.append((topic, event))
        return await self.twin.publish(topic, event)


class GroupsCompete(QueueSaboteur):
    """All groups of a topic share its mail."""

    caught_by = Publishing.test_each_group_of_a_topic_gets_every_message

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        async def between(delivery: Delivery) -> Outcome:
            if delivery.event in [event for _, event in self.shared.published]:
                return await handler(replace(delivery, event=replace(delivery.event, id="taken")))
            self.shared.published.append((subscription.topic, delivery.event))
            return await handler(delivery)

        await self.twin.subscribe(subscription, between)


class OnlyOurNamespaces(QueueSaboteur):
    """A subject that the engine does not define is not stored."""

    caught_by = Publishing.test_a_namespace_that_is_not_the_engines_has_mailboxes_too

    async def publish(self, topic: str, event: Event) -> Event:
        ours = topics.namespace(topic) != topic.partition(".")[0]
        return await self.twin.publish(topic, event) if ours else event


class MailDiesWithItsPublisher(QueueSaboteur):
    """What a client published is not delivered once it is gone."""

    caught_by = Publishing.test_mail_outlives_the_client_that_published_it

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        if any(client is not self for client in self.shared.clients):
            await self.twin.delete_subscription(subscription)
        await self.twin.subscribe(subscription, handler)


class LastInFirstOut(QueueSaboteur):
    """The newest mail is served first."""

    caught_by = ServingOrder.test_mail_is_served_in_the_order_in_which_it_was_published

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        waiting = [event for topic, event in self.shared.published if topic == subscription.topic]

        async def between(delivery: Delivery) -> Outcome:
            return await handler(replace(delivery, event=waiting.pop() if waiting else delivery.event))

        await self.twin.subscribe(subscription, between)

    async def publish(self, topic: str, event: Event) -> Event:
        self.shared.published.append((topic, event))
        return await self.twin.publish(topic, event)


class ASecondAttachReplacesTheFirst(QueueSaboteur):
    """Attaching twice detaches what was there."""

    caught_by = Outcomes.test_a_second_attach_of_one_process_is_refused

    async def subscribe(self, subscription: Subscription, handler: Handler) -> None:
        await self.twin.detach(subscription)
        await self.twin.subscribe(subscription, handler)


PUBLISHING_FAULTS: tuple[type[QueueSaboteur], ...] = (
    NodeIsLost,
    NodeIsOverwritten,
    StampsTheOriginal,
    UncoveredMailIsKept,
    RepeatsAreStored,
    PutBackIsARepeat,
    RepeatsAreForgottenOnceWorked,
    EventsAreKnownByIdAlone,
    GroupsCompete,
    OnlyOurNamespaces,
    MailDiesWithItsPublisher,
    LastInFirstOut,
    ASecondAttachReplacesTheFirst,
)
