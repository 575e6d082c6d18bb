"""What the clients of a run do beside their mail: tell, listen, look, make and remove mailboxes, ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from crewlet import topics
from crewlet.base.clock import Clock
from crewlet.events import Event
from crewlet.queue import BatchOptions, Subscription
from crewlet.testing.simulation.company import Attached, Client
from crewlet.testing.simulation.ledger import Ledger
from crewlet.testing.simulation.plan import Aside, AsideVerb
from crewlet.testing.simulation.publishing import Publishing
from crewlet.testing.simulation.questions import Questions
from crewlet.testing.simulation.side_mailboxes import SideMailboxes

__all__ = ["Asides"]

_KINDS: Final = ("note", "note.deep", "other")
_LINGERS_S: Final = (0.0, 1.5, 10.0)
_CAPS: Final = (1, 2, 5, 20)
_WAITED_FOR_S: Final = 3.0
_IDLE_WITHIN_S: Final = 60.0


class Asides:
    """Takes the steps that no handler sees."""

    def __init__(
        self, mailboxes: tuple[Subscription, ...], clock: Clock, ledger: Ledger, publishing: Publishing
    ) -> None:
        self.side_mailboxes = SideMailboxes(mailboxes, ledger)
        self.questions = Questions(ledger)
        self._clock = clock
        self._ledger = ledger
        self._publishing = publishing
        self._events = 0
        inbox = mailboxes[0].topic
        events = topics.stream_subjects(topics.STREAM_EVENTS)
        self._patterns = (inbox, events, topics.event_topic("*"), ">")
        self._deeds: dict[AsideVerb, Callable[[Client, int], Awaitable[None]]] = {
            AsideVerb.TELL: self._tell,
            AsideVerb.LISTEN: self._listen,
            AsideVerb.FEED: self._feed,
            AsideVerb.LOOK: self.side_mailboxes.look,
            AsideVerb.MAKE: self.side_mailboxes.make,
            AsideVerb.REMOVE: self.side_mailboxes.remove,
            AsideVerb.SERVE: self.questions.serve,
            AsideVerb.ASK: self.questions.ask,
            AsideVerb.WAIT: self._wait,
            AsideVerb.CHANGE: self._change,
        }

    async def take(self, client: Client, step: Aside) -> None:
        """Do what the step says. Raises ``Unavailable`` where a client that is cut off was to reach the broker."""
        if client.crashed:
            return
        self._ledger.trace.add(f"{client.node} does {step.verb} {step.number}")
        self._ledger.counts[str(step.verb)] += 1
        await self._deeds[step.verb](client, step.number)

    async def _tell(self, client: Client, number: int) -> None:
        self._events += 1
        event = Event(id=f"t{self._events:03}", type="simulated", timestamp=self._clock.now(), payload={})
        await self._publishing.publish(client, topics.event_topic(_KINDS[number % len(_KINDS)]), event)

    async def _listen(self, client: Client, _: int) -> None:
        self._publishing.listen(client, "for a while")

    async def _feed(self, client: Client, number: int) -> None:
        pattern = self._patterns[number % len(self._patterns)]
        if number < len(self._patterns):
            await self._publishing.open_feed(client, pattern)
        else:
            await self._publishing.close_feed(client, pattern)

    async def _wait(self, client: Client, _: int) -> None:
        """Only for what ends soon: the steps that follow wait too."""
        for mailbox, attached in client.attached.items():
            working = [handling for handling in self._ledger.running if handling.attached is attached]
            soon_s = self._ledger.now_s() + _WAITED_FOR_S
            if not client.is_heard or not working or any(handling.until_s > soon_s for handling in working):
                continue
            async with asyncio.timeout(_IDLE_WITHIN_S):
                await client.queue.wait_idle(mailbox)
            if still := [handling for handling in working if handling in self._ledger.running]:
                self._ledger.found("idle", f"{client.node} works {[*still[0].deliveries]}, and was waited for")
            return

    async def _change(self, client: Client, number: int) -> None:
        for attached in _first_hauling(client):
            options = BatchOptions(linger_s=_LINGERS_S[number % len(_LINGERS_S)], max_events=_CAPS[number % len(_CAPS)])
            attached.change_options(options, self._ledger.now_s())


def _first_hauling(client: Client) -> list[Attached]:
    return [attached for attached in client.attached.values() if attached.hauls][:1]
