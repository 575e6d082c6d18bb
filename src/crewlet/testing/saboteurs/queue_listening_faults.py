"""Saboteurs of what is told beside the mailboxes: listeners, live feeds, ephemeral questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from crewlet import topics
from crewlet.backends.memory import MemoryQueue
from crewlet.events import Event
from crewlet.queue import Answer, PublishListener, Responder, StreamHandler, StreamSubscription, Subscription
from crewlet.testing.contracts import Broadcast, Listeners, Questions
from crewlet.testing.saboteurs.queue_saboteur import QueueSaboteur, Shared

__all__ = ["LISTENING_FAULTS"]


class ListenersAreNotAwaited(QueueSaboteur):
    """Listeners are told in the background."""

    caught_by = Listeners.test_a_listener_is_awaited_before_the_publish_returns

    def add_publish_listener(self, listener: PublishListener) -> Callable[[], None]:
        async def later(topic: str, event: Event) -> None:
            self.tasks.start("tell", self._tell(listener, topic, event))

        return self.twin.add_publish_listener(later)

    async def _tell(self, listener: PublishListener, topic: str, event: Event) -> None:
        await listener(topic, event)


class OwnListeners(QueueSaboteur):
    """A saboteur that keeps the listeners itself."""

    def __init__(self, twin: MemoryQueue, shared: Shared) -> None:
        super().__init__(twin, shared)
        self.listeners: list[PublishListener] = []

    def add_publish_listener(self, listener: PublishListener) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener) if listener in self.listeners else None


class ListenersComeFirst(OwnListeners):
    """Listeners are told before the broker has acknowledged."""

    caught_by = Listeners.test_the_message_is_stored_before_a_listener_hears_of_it

    async def publish(self, topic: str, event: Event) -> Event:
        for listener in self.listeners:
            await listener(topic, event.stamped(self.twin.node))
        return await self.twin.publish(topic, event)


class ListenersSeeTheOriginal(OwnListeners):
    """Listeners are told of the event without its stamp."""

    caught_by = Listeners.test_a_listener_sees_the_event_as_it_was_stamped

    async def publish(self, topic: str, event: Event) -> Event:
        stamped = await self.twin.publish(topic, event)
        for listener in self.listeners:
            await listener(topic, event)
        return stamped


class ListenersCanFailAPublish(OwnListeners):
    """What a listener raises reaches the publisher."""

    caught_by = Listeners.test_a_failing_listener_fails_neither_the_publish_nor_the_next_listener

    async def publish(self, topic: str, event: Event) -> Event:
        stamped = await self.twin.publish(topic, event)
        for listener in self.listeners:
            await listener(topic, stamped)
        return stamped


class ListenersStay(QueueSaboteur):
    """A removed listener is told on."""

    caught_by = Listeners.test_a_removed_listener_hears_nothing_more

    def add_publish_listener(self, listener: PublishListener) -> Callable[[], None]:
        self.twin.add_publish_listener(listener)
        return lambda: None


class ListenersAreFleetWide(QueueSaboteur):
    """A listener is told of every process's publishes."""

    caught_by = Listeners.test_a_listener_hears_its_own_process_alone

    def add_publish_listener(self, listener: PublishListener) -> Callable[[], None]:
        removes = [client.twin.add_publish_listener(listener) for client in self.shared.clients]

        def remove() -> None:
            for each in removes:
                each()

        return remove


class FeedsCompete(QueueSaboteur):
    """An event goes to one of the feeds."""

    caught_by = Broadcast.test_every_feed_is_told_of_every_matching_event

    async def subscribe_stream(self, pattern: str, handler: StreamHandler) -> StreamSubscription:
        def first_only(topic: str, event: Event) -> None:
            if (topic, event) not in self.shared.published:
                self.shared.published.append((topic, event))
                handler(topic, event)

        return await self.twin.subscribe_stream(pattern, first_only)


class FeedsReplay(QueueSaboteur):
    """A feed begins with what is stored."""

    caught_by = Broadcast.test_a_feed_begins_now

    async def publish(self, topic: str, event: Event) -> Event:
        self.shared.published.append((topic, event))
        return await self.twin.publish(topic, event)

    async def subscribe_stream(self, pattern: str, handler: StreamHandler) -> StreamSubscription:
        for topic, event in self.shared.published:
            handler(topic, event)
        return await self.twin.subscribe_stream(pattern, handler)


class FeedsHoldMail(QueueSaboteur):
    """A feed is a mailbox that keeps what it is told of."""

    caught_by = Broadcast.test_a_feed_on_a_mailbox_takes_nothing_from_it

    async def subscribe_stream(self, pattern: str, handler: StreamHandler) -> StreamSubscription:
        if "*" not in pattern and ">" not in pattern:
            await self.twin.ensure_subscription(Subscription(pattern, "feed"))
        return await self.twin.subscribe_stream(pattern, handler)


class AStarIsTheRest(QueueSaboteur):
    """``*`` covers any number of segments."""

    caught_by = Broadcast.test_a_star_is_one_segment_and_an_arrow_the_rest

    async def subscribe_stream(self, pattern: str, handler: StreamHandler) -> StreamSubscription:
        return await self.twin.subscribe_stream(pattern.removesuffix("*") + ">" * pattern.endswith("*"), handler)


class SpanningPatternsAreGuessed(QueueSaboteur):
    """A pattern over several namespaces is read as one of them."""

    caught_by = Broadcast.test_a_pattern_over_several_namespaces_is_refused

    async def subscribe_stream(self, pattern: str, handler: StreamHandler) -> StreamSubscription:
        try:
            return await self.twin.subscribe_stream(pattern, handler)
        except ValueError:
            return await self.twin.subscribe_stream("guessed.>", handler)


class FeedsGoOn(QueueSaboteur):
    """A closed feed is told on."""

    caught_by = Broadcast.test_a_closed_feed_is_told_nothing_more

    async def subscribe_stream(self, pattern: str, handler: StreamHandler) -> StreamSubscription:
        await self.twin.subscribe_stream(pattern, handler)
        return await self.twin.subscribe_stream("nothing.at.all", lambda _topic, _event: None)


class AFaultEndsAFeed(QueueSaboteur):
    """A reader that raises is told nothing more."""

    caught_by = Broadcast.test_a_readers_fault_costs_it_one_event

    async def subscribe_stream(self, pattern: str, handler: StreamHandler) -> StreamSubscription:
        broken: list[str] = []

        def until_broken(topic: str, event: Event) -> None:
            if not broken:
                broken.append(event.id)
                handler(topic, event)
                broken.clear()

        return await self.twin.subscribe_stream(pattern, until_broken)


class DeadLettersAreTraffic(QueueSaboteur):
    """Feeds are told of dead letters too."""

    caught_by = Broadcast.test_dead_letters_are_no_live_traffic

    async def subscribe_stream(self, pattern: str, handler: StreamHandler) -> StreamSubscription:
        await self.twin.subscribe_stream(topics.stream_subjects(topics.STREAM_DLQ), handler)
        return await self.twin.subscribe_stream(pattern, handler)


class AnswersAreNameless(QueueSaboteur):
    """Nobody can tell who answered."""

    caught_by = Questions.test_every_node_that_serves_answers_under_its_name

    async def scatter(self, subject: str, payload: bytes, *, timeout_s: float, expected: int = 0) -> list[Answer]:
        answers = await self.twin.scatter(subject, payload, timeout_s=timeout_s, expected=expected)
        return [replace(answer, node="") for answer in answers]


class TheFirstAnswerWins(QueueSaboteur):
    """One answer ends the question."""

    caught_by = Questions.test_every_node_that_serves_answers_under_its_name

    async def scatter(self, subject: str, payload: bytes, *, timeout_s: float, expected: int = 0) -> list[Answer]:
        return await self.twin.scatter(subject, payload, timeout_s=timeout_s, expected=1)


class TheAskerIsLeftOut(QueueSaboteur):
    """Who asks does not hear itself."""

    caught_by = Questions.test_who_asks_may_be_among_who_answers

    async def scatter(self, subject: str, payload: bytes, *, timeout_s: float, expected: int = 0) -> list[Answer]:
        answers = await self.twin.scatter(subject, payload, timeout_s=timeout_s, expected=expected)
        return [answer for answer in answers if answer.node != self.twin.node]


class FailuresAreSilent(QueueSaboteur):
    """A responder that fails says nothing."""

    caught_by = Questions.test_a_failing_responder_is_a_failed_answer_and_no_silence

    async def scatter(self, subject: str, payload: bytes, *, timeout_s: float, expected: int = 0) -> list[Answer]:
        answers = await self.twin.scatter(subject, payload, timeout_s=timeout_s, expected=expected)
        return [answer for answer in answers if not answer.error]


class QuestionsWaitTooLong(QueueSaboteur):
    """The deadline is not the caller's."""

    caught_by = Questions.test_who_is_silent_is_missing_when_the_time_is_up

    async def scatter(self, subject: str, payload: bytes, *, timeout_s: float, expected: int = 0) -> list[Answer]:
        return await self.twin.scatter(subject, payload, timeout_s=timeout_s * 10, expected=expected)


class NobodyIsAnError(QueueSaboteur):
    """A question that nobody answers raises."""

    caught_by = Questions.test_a_question_that_nobody_serves_ends_with_no_answer

    async def scatter(self, subject: str, payload: bytes, *, timeout_s: float, expected: int = 0) -> list[Answer]:
        answers = await self.twin.scatter(subject, payload, timeout_s=timeout_s, expected=expected)
        assert answers, "nobody answered"
        return answers


class RespondersGoOn(QueueSaboteur):
    """A closed responder answers on."""

    caught_by = Questions.test_a_closed_responder_answers_no_more

    async def serve(self, subject: str, responder: Responder) -> StreamSubscription:
        await self.twin.serve(subject, responder)
        return await self.twin.serve(f"{subject}.other", responder)


LISTENING_FAULTS: tuple[type[QueueSaboteur], ...] = (
    ListenersAreNotAwaited,
    ListenersComeFirst,
    ListenersSeeTheOriginal,
    ListenersCanFailAPublish,
    ListenersStay,
    ListenersAreFleetWide,
    FeedsCompete,
    FeedsReplay,
    FeedsHoldMail,
    AStarIsTheRest,
    SpanningPatternsAreGuessed,
    FeedsGoOn,
    AFaultEndsAFeed,
    DeadLettersAreTraffic,
    AnswersAreNameless,
    TheFirstAnswerWins,
    TheAskerIsLeftOut,
    FailuresAreSilent,
    QuestionsWaitTooLong,
    NobodyIsAnError,
    RespondersGoOn,
)
