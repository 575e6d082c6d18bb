"""What comes in from outside: bursts on a few conversations, messages again, people who wait for an answer."""

from __future__ import annotations

from random import Random

from crewlet import topics
from crewlet.base.trace import fresh_trace
from crewlet.events import Event, new_event
from crewlet.events.types import RawWebhook, TaskAssigned
from crewlet.notify import NotificationService, Seat, inbound_subscription
from crewlet.queue import Delivery, put_back
from crewlet.testing.ids import SeededIds
from crewlet.testing.played_sources import board_change, chat_message
from crewlet.testing.turn_simulation.plan import HANDLES
from crewlet.testing.turn_simulation.world import TurnWorld

__all__ = ["Traffic"]

_HEADROOM = 5
_INBOXES = frozenset(map(topics.agent_inbox, HANDLES))


class _Directory:
    def resolve(self, identity: str) -> Seat | None:
        return Seat(identity, f"agent of {identity}", is_agent=True)


class Traffic:
    """Sends it, through the engine's own routing; nothing that is sent is lost before it is in an inbox."""

    def __init__(self, world: TurnWorld, chance: Random) -> None:
        self._world = world
        self._chance = chance
        self._ids = SeededIds(world.seed + 1_000_000)
        self._count = 0
        self._sent: list[tuple[str, Event]] = []
        self._service = NotificationService(
            publish=self._publish, directory=_Directory(), sources=world.sources, clock=world.clock, ids=self._ids
        )

    async def burst(self) -> int:
        """A few messages for one seat or several, on a few conversations; returns how many."""
        handles = self._chance.sample(HANDLES, self._chance.choice((1, 1, 2)))
        size = self._chance.randint(1, self._world.plan.burst_max)
        for _ in range(size):
            await self._one(self._chance.choice(handles))
        return size

    async def again(self) -> bool:
        """An event that was sent comes once more, under its own id."""
        if not self._sent:
            return False
        topic, event = self._chance.choice(self._sent[-10:])
        await self._world.client.publish(topic, put_back(event))
        return True

    async def _one(self, handle: str) -> None:
        self._count += 1
        kind = self._chance.choices(("board", "chat", "operator", "task"), (6, 5, 3, 1))[0]
        if kind == "task":
            body = TaskAssigned(agent_handle=handle, task=f"do {self._count}")
            trace = fresh_trace(self._ids)
            event = new_event(body, trace=trace, now=self._world.clock.now(), ids=self._ids)
            await self._publish(topics.agent_inbox(handle), event)
            return
        raw = {"board": self._board, "chat": self._chat, "operator": self._operator}[kind](handle)
        event = new_event(raw, trace=fresh_trace(self._ids), now=self._world.clock.now(), ids=self._ids)
        await self._service.handle(Delivery(inbound_subscription(), event, _HEADROOM))

    def _board(self, handle: str) -> RawWebhook:
        issue = f"P-{self._chance.randint(1, 2)}"
        kind = self._chance.choices(("comment", "issue_updated", "assigned"), (5, 3, 1))[0]
        by = self._chance.choice(("ann", "bob"))
        if kind == "comment" and self._chance.random() < 0.2:  # noqa: PLR2004 - somebody says the same again
            return board_change(issue, kind, to=handle, by=by, text="ping")
        raw = board_change(issue, kind, to=handle, by=by, text=f"see [m{self._count:04d}]")
        raw.metadata["marker"] = f"[m{self._count:04d}]"
        return raw

    def _chat(self, handle: str) -> RawWebhook:
        channel, kind = self._chance.choice((("D1", "im"), ("C1", "")))
        thread = self._chance.choice(("", "t1"))
        ts, by = f"{self._count:04d}", self._chance.choice(("ann", "bob"))
        text = f"about [m{self._count:04d}]"
        if thread:
            self._world.chat.threads.say(channel, thread, ts, by=by, text=text)
        return chat_message(channel, ts, to=handle, by=by, text=text, thread=thread, channel_type=kind)

    def _operator(self, handle: str) -> RawWebhook:
        return RawWebhook(
            integration="operator", recipient=handle, sender="operator:ann", body=f"what of {self._count}?"
        )

    async def _publish(self, topic: str, event: Event) -> Event:
        if topic in _INBOXES:
            self._sent.append((topic, event))
        return await self._world.client.publish(topic, event)
