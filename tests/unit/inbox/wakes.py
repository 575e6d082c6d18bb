"""Wakes as the notification service makes them from what the played sources bring."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import msgspec

from crewlet.base.trace import Trace
from crewlet.events import Event, new_event
from crewlet.events.types import ExternalNotification, RawWebhook
from crewlet.notify import NotificationService, OperatorSource, Seat, Sources, inbound_subscription
from crewlet.queue import Delivery
from crewlet.testing import SeededIds, VirtualClock
from crewlet.testing.played_sources import PlayedBoard, PlayedChat, board_change, chat_message

__all__ = ["NOON", "SOURCES", "body_of", "changed", "said", "wake"]

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOURCES = Sources([OperatorSource(), PlayedBoard(), PlayedChat()])


class _Directory:
    def resolve(self, identity: str) -> Seat | None:
        return Seat(identity, f"agent of {identity}", is_agent=True)


async def wake(raw: RawWebhook, event_id: str, *, at_s: float = 0, sources: Sources = SOURCES) -> Event:
    """The wake that ``raw`` becomes, under an id and at a time of our choice, each with a trace of its own."""
    published: list[Event] = []

    async def publish(topic: str, event: Event) -> Event:
        published.append(event)
        return event

    ids = SeededIds(sum(event_id.encode()))
    service = NotificationService(
        publish=publish, directory=_Directory(), sources=sources, clock=VirtualClock(), ids=ids
    )
    event = new_event(raw, trace=Trace(ids.hex(32), ids.hex(16)), now=NOON, ids=ids)
    await service.handle(Delivery(inbound_subscription(), event, 24))
    (made,) = published
    return replace(made, id=event_id, timestamp=NOON + timedelta(seconds=at_s))


async def said(
    text: str,
    event_id: str = "m1",
    *,
    by: str = "ann",
    at_s: float = 0,
    channel: str = "D1",
    ts: str = "",
    thread: str = "",
) -> Event:
    """Somebody wrote to the ceo in a chat; ``D1`` is a direct conversation."""
    raw = chat_message(channel, ts or event_id, to="ceo", by=by, text=text, thread=thread)
    return await wake(raw, event_id, at_s=at_s)


async def changed(
    kind: str, text: str, event_id: str = "c1", *, by: str = "ann", at_s: float = 0, issue: str = "P-7"
) -> Event:
    """Somebody changed an issue that the ceo follows."""
    return await wake(board_change(issue, kind, to="ceo", by=by, text=text), event_id, at_s=at_s)


def body_of(event: Event, **changes: object) -> ExternalNotification:
    """What a wake says, with these changes."""
    return msgspec.structs.replace(cast("ExternalNotification", event.data), **changes)
