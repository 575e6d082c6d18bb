"""How a message stands, folded from the events of its trace and the records of its asks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crewlet.a2a import answer_wake_id, request_wake_id
from crewlet.coordination import Channel, ChannelStatus
from crewlet.events import Event
from crewlet.events.types import (
    A2aChannelOpened,
    AgentTurnCompleted,
    AgentTurnStarted,
    InboundDelivery,
    NotificationSkipped,
    TurnTriggerSkipped,
)
from crewlet.node.face import AskView, MessageState, MessageView, TurnView
from crewlet.notify import wake_id

__all__ = ["CHAIN_TYPES", "asks_in", "message_view", "turn_views"]

CHAIN_TYPES = frozenset(
    {
        A2aChannelOpened.event_type,
        AgentTurnCompleted.event_type,
        AgentTurnStarted.event_type,
        NotificationSkipped.event_type,
        TurnTriggerSkipped.event_type,
    }
)
"""The event types that a message's standing is read from."""


def asks_in(events: Iterable[Event]) -> tuple[str, ...]:
    """The channel ids of the asks that a chain opened, in order."""
    opened = (event.data for event in events)
    return tuple(dict.fromkeys(data.channel_id for data in opened if isinstance(data, A2aChannelOpened)))


def turn_views(events: Iterable[Event]) -> tuple[TurnView, ...]:
    """The runs that ``events`` (oldest first) tell of, in the order they began."""
    started: dict[str, tuple[Event, AgentTurnStarted]] = {}
    ended: dict[str, tuple[Event, AgentTurnCompleted]] = {}
    for event in events:
        if isinstance(event.data, AgentTurnStarted):
            started.setdefault(event.data.turn_id, (event, event.data))
        elif isinstance(event.data, AgentTurnCompleted):
            ended[event.data.turn_id] = (event, event.data)
    return tuple(_turn_view(start, body, ended.get(body.turn_id)) for start, body in started.values())


def message_view(delivery: Event, events: Sequence[Event], asks: Sequence[Channel]) -> MessageView:
    """The standing of the message behind ``delivery``, given its chain's events (oldest first) and its asks' records.

    It is final once every wake that the chain sent has been worked and every ask of it is closed: the last turn of
    the seat that was written to then holds the answer.
    """
    body = delivery.data
    if not isinstance(body, InboundDelivery):
        message = f"{delivery.type} is no message"
        raise TypeError(message)
    turns = turn_views(events)
    verdict = _verdict(body, events, turns, asks)
    return MessageView(
        id=body.source_event_id,
        trace_id=delivery.trace_id,
        handle=body.recipient,
        text=body.body,
        sender=body.sender,
        state=verdict.state,
        answer=verdict.answer,
        reason=verdict.reason,
        turns=turns,
        asks=tuple(
            AskView(channel_id=a.channel_id, requester=a.requester, target=a.target, status=str(a.status)) for a in asks
        ),
    )


@dataclass(frozen=True, slots=True)
class _Verdict:
    state: str
    answer: str = ""
    reason: str = ""


def _turn_view(start: Event, body: AgentTurnStarted, end: tuple[Event, AgentTurnCompleted] | None) -> TurnView:
    done = None if end is None else end[1]
    return TurnView(
        turn_id=body.turn_id,
        handle=body.agent_handle,
        trigger_id="" if body.trigger is None else body.trigger.id,
        trigger_type="" if body.trigger is None else body.trigger.type,
        started_at=start.timestamp,
        ended_at=None if end is None else end[0].timestamp,
        state=_turn_state(done),
        artifact="" if done is None else done.artifact,
        error="" if done is None else done.error,
        error_kind="" if done is None else done.error_kind,
        asks=() if done is None else done.asks,
    )


def _turn_state(done: AgentTurnCompleted | None) -> str:
    if done is None:
        return "running"
    if done.redelivered:
        return "redelivered"
    if done.failed:
        return MessageState.FAILED
    return done.decision or "done"


def _verdict(
    body: InboundDelivery, events: Sequence[Event], turns: Sequence[TurnView], asks: Sequence[Channel]
) -> _Verdict:
    for event in events:
        if isinstance(event.data, NotificationSkipped) and event.data.source_event_id == body.source_event_id:
            return _Verdict(MessageState.SKIPPED, reason=event.data.reason)
    if _outstanding(body, events, turns, asks):
        state = MessageState.WORKING if turns else MessageState.WAITING
        return _Verdict(state, answer=_last_artifact(body, turns), reason=_last_trouble(turns))
    own = [turn for turn in turns if turn.handle == body.recipient and turn.state not in ("running", "redelivered")]
    if not own:
        return _Verdict(MessageState.FAILED, reason=_given_up(events) or _last_trouble(turns))
    last = own[-1]
    if last.state == MessageState.FAILED:
        return _Verdict(MessageState.FAILED, answer=last.artifact, reason=last.error or last.error_kind)
    if last.state == MessageState.SKIPPED:
        return _Verdict(
            MessageState.SKIPPED, answer=last.artifact, reason="the seat decided that nothing was to be done"
        )
    return _Verdict(MessageState.ANSWERED, answer=last.artifact)


def _outstanding(
    body: InboundDelivery, events: Sequence[Event], turns: Sequence[TurnView], asks: Sequence[Channel]
) -> bool:
    if any(ask.status is not ChannelStatus.CLOSED for ask in asks):
        return True
    wakes = {wake_id(body.source_event_id, body.recipient)}
    for ask in asks:
        wakes |= {request_wake_id(ask.channel_id), answer_wake_id(ask.channel_id)}
    worked = {turn.trigger_id for turn in turns if turn.state not in ("running", "redelivered")}
    worked |= {event.data.trigger_id for event in events if isinstance(event.data, TurnTriggerSkipped)}
    return not wakes <= worked


def _last_artifact(body: InboundDelivery, turns: Sequence[TurnView]) -> str:
    said = [turn.artifact for turn in turns if turn.handle == body.recipient and turn.artifact]
    return said[-1] if said else ""


def _last_trouble(turns: Sequence[TurnView]) -> str:
    trouble = [turn.error or turn.error_kind for turn in turns if turn.state in ("redelivered", MessageState.FAILED)]
    return trouble[-1] if trouble else ""


def _given_up(events: Sequence[Event]) -> str:
    reasons = [event.data for event in events if isinstance(event.data, TurnTriggerSkipped)]
    return "" if not reasons else ": ".join(part for part in (reasons[-1].reason, reasons[-1].detail) if part)
