"""Which events of a trace are one message's own: a caller's trace may hold several messages. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from crewlet.a2a import answer_wake_id, request_wake_id
from crewlet.events import Event
from crewlet.events.types import (
    A2aChannelOpened,
    AgentTurnCompleted,
    AgentTurnStarted,
    InboundDelivery,
    NotificationSkipped,
    TurnTriggerSkipped,
)
from crewlet.notify import wake_id

__all__ = ["events_of_message"]


def events_of_message(message: InboundDelivery, events: Sequence[Event]) -> list[Event]:
    """Those of ``events``, in their order, that the message led to.

    From its own wake to the turns that took it up, from each of them to what it asked, and so on: by ids alone.
    """
    woken, channels = _turns_by_wake(events), _channels_by_turn(events)
    wakes: set[str] = set()
    turns: set[str] = set()
    todo = [wake_id(message.source_event_id, message.recipient)]
    while todo:
        wake = todo.pop()
        if wake in wakes:
            continue
        wakes.add(wake)
        turns |= woken[wake]
        asked = [channel for turn in woken[wake] for channel in channels[turn]]
        todo += [of(channel) for channel in asked for of in (request_wake_id, answer_wake_id)]
    return [event for event in events if _is_of(event, message, wakes, turns)]


def _turns_by_wake(events: Iterable[Event]) -> defaultdict[str, set[str]]:
    woken: defaultdict[str, set[str]] = defaultdict(set)
    for event in events:
        body = event.data
        if isinstance(body, AgentTurnStarted | AgentTurnCompleted) and body.trigger is not None:
            woken[body.trigger.id].add(body.turn_id)
    return woken


def _channels_by_turn(events: Iterable[Event]) -> defaultdict[str, set[str]]:
    channels: defaultdict[str, set[str]] = defaultdict(set)
    for event in events:
        if isinstance(event.data, A2aChannelOpened):
            channels[event.data.turn_id].add(event.data.channel_id)
        elif isinstance(event.data, AgentTurnCompleted):
            channels[event.data.turn_id].update(event.data.asks)
    return channels


def _is_of(event: Event, message: InboundDelivery, wakes: set[str], turns: set[str]) -> bool:
    body = event.data
    if isinstance(body, NotificationSkipped):
        return body.source_event_id == message.source_event_id
    if isinstance(body, TurnTriggerSkipped):
        return body.trigger_id in wakes
    return isinstance(body, AgentTurnStarted | AgentTurnCompleted | A2aChannelOpened) and body.turn_id in turns
