"""Saboteurs of live events: whether they go out, when, in whose name, and who is told of them."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from crewlet.base.errors import Unavailable
from crewlet.events import Event
from crewlet.testing.contracts import LiveEvents
from crewlet.testing.saboteurs.queue_listening_faults import OwnListeners
from crewlet.testing.saboteurs.queue_saboteur import QueueSaboteur

__all__ = ["LIVE_FAULTS"]


class LiveEventsStayHome(QueueSaboteur):
    """They are told to this process's feeds alone, as if the broker had nothing to do with them."""

    caught_by = LiveEvents.test_every_feed_is_told_of_it

    async def publish_live(self, topic: str, event: Event) -> Event:
        return event.stamped(self.twin.node)


class LiveEventsAreOvertaken(QueueSaboteur):
    """They go out in the background, when there is time."""

    caught_by = LiveEvents.test_it_keeps_its_place_among_what_is_published_before_and_after_it

    async def publish_live(self, topic: str, event: Event) -> Event:
        self.tasks.start("later", self._later(topic, event))
        return event.stamped(self.twin.node)

    async def _later(self, topic: str, event: Event) -> None:
        await asyncio.sleep(0.01)
        await self.twin.publish_live(topic, event)


class TheNewestGoesFirst(QueueSaboteur):
    """Of a burst the last one goes out first."""

    caught_by = LiveEvents.test_a_burst_of_them_stays_in_order

    async def publish_live(self, topic: str, event: Event) -> Event:
        self.shared.published.append((topic, event))
        if len(self.shared.published) == 1:
            self.tasks.start("burst", self._burst())
        return event.stamped(self.twin.node)

    async def _burst(self) -> None:
        await asyncio.sleep(0)
        while self.shared.published:
            await self.twin.publish_live(*self.shared.published.pop())


class LiveEventsAreNameless(QueueSaboteur):
    """They name nobody."""

    caught_by = LiveEvents.test_it_is_told_with_the_publishing_node_on_it

    async def publish_live(self, topic: str, event: Event) -> Event:
        return await self.twin.publish_live(topic, replace(event, node="nobody"))


class LiveListenersAreToldLater(OwnListeners):
    """Listeners are told of them in the background."""

    caught_by = LiveEvents.test_each_listener_is_awaited_before_it_returns

    async def publish_live(self, topic: str, event: Event) -> Event:
        stamped = await self.twin.publish_live(topic, event)
        self.tasks.start("tell", self._told(topic, stamped))
        return stamped

    async def _told(self, topic: str, event: Event) -> None:
        for listener in self.listeners:
            await listener(topic, event)


class ListenersCanFailALiveEvent(OwnListeners):
    """What a listener raises reaches the publisher."""

    caught_by = LiveEvents.test_a_failing_listener_fails_neither_it_nor_the_next_listener

    async def publish_live(self, topic: str, event: Event) -> Event:
        stamped = await self.twin.publish_live(topic, event)
        for listener in self.listeners:
            await listener(topic, stamped)
        return stamped


class LiveEventsVanish(QueueSaboteur):
    """What cannot go out is forgotten without a word."""

    caught_by = LiveEvents.test_what_cannot_be_on_its_way_is_refused_at_once_and_told_to_no_listener

    async def publish_live(self, topic: str, event: Event) -> Event:
        with contextlib.suppress(Unavailable):
            return await self.twin.publish_live(topic, event)
        return event.stamped(self.twin.node)


class LiveEventsWaitForTheLink(QueueSaboteur):
    """What cannot go out now waits whether it can later."""

    caught_by = LiveEvents.test_what_cannot_be_on_its_way_is_refused_at_once_and_told_to_no_listener

    async def publish_live(self, topic: str, event: Event) -> Event:
        try:
            return await self.twin.publish_live(topic, event)
        except Unavailable:
            await asyncio.sleep(1.0)
            return await self.twin.publish_live(topic, event)


class ListenersHearOfWhatIsRefused(OwnListeners):
    """Listeners are told of what never went out."""

    caught_by = LiveEvents.test_what_cannot_be_on_its_way_is_refused_at_once_and_told_to_no_listener

    async def publish_live(self, topic: str, event: Event) -> Event:
        for listener in self.listeners:
            await listener(topic, event.stamped(self.twin.node))
        return await self.twin.publish_live(topic, event)


LIVE_FAULTS: tuple[type[QueueSaboteur], ...] = (
    LiveEventsStayHome,
    LiveEventsAreOvertaken,
    TheNewestGoesFirst,
    LiveEventsAreNameless,
    LiveListenersAreToldLater,
    ListenersCanFailALiveEvent,
    LiveEventsVanish,
    LiveEventsWaitForTheLink,
    ListenersHearOfWhatIsRefused,
)
