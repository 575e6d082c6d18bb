"""How a message stands, folded from the events of its trace and the records of its asks. Pure.

Nothing here rests on the order of the events but the choice between runs of the same work: a clock that goes back
must not make an earlier turn the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from crewlet.a2a import answer_wake_id
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
from crewlet.inbox import Decision
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
_UNENDED: Final = frozenset({"running", "redelivered"})
_WITHOUT_ANSWER: Final = frozenset({MessageState.FAILED, MessageState.SKIPPED, Decision.STOPPED})


def asks_in(events: Iterable[Event]) -> tuple[str, ...]:
    """The channel ids of the asks that a chain opened, in order: as each opening tells, and each turn that waits."""
    asks: dict[str, None] = {}
    for event in events:
        if isinstance(event.data, A2aChannelOpened):
            asks[event.data.channel_id] = None
        elif isinstance(event.data, AgentTurnCompleted):
            asks |= dict.fromkeys(event.data.asks)
    return tuple(asks)


def turn_views(events: Iterable[Event]) -> tuple[TurnView, ...]:
    """The runs that ``events`` (oldest first) tell of, in the order they began."""
    runs: dict[str, list[Event]] = {}
    for event in events:
        if isinstance(event.data, (AgentTurnStarted, AgentTurnCompleted)):
            run = runs.setdefault(event.data.turn_id, [])
            # The starts go first, whatever the clock said at the end; of several it began with the first.
            begun = sum(isinstance(each.data, AgentTurnStarted) for each in run)
            run.insert(begun if isinstance(event.data, AgentTurnStarted) else len(run), event)
    return tuple(_turn_view(of_turn) for of_turn in runs.values())


def message_view(delivery: Event, events: Sequence[Event], asks: Sequence[Channel]) -> MessageView:
    """The standing of the message behind ``delivery``, given its chain's events (oldest first) and its asks' records.

    It is final once the turn that took it up ended without an ask, or what it asked was closed and the turn that the
    answer woke ended so, and so on: that turn then holds the answer.
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


def _turn_view(of_turn: Sequence[Event]) -> TurnView:
    """One run from its beginning and its end; the end alone tells enough where a row of the beginning was lost."""
    first, last = of_turn[0], _end_of_turn(of_turn)
    body, done = first.data, None if last is None else last.data
    assert isinstance(body, (AgentTurnStarted, AgentTurnCompleted))
    assert done is None or isinstance(done, AgentTurnCompleted)
    return TurnView(
        turn_id=body.turn_id,
        handle=body.agent_handle,
        trigger_id="" if body.trigger is None else body.trigger.id,
        trigger_type="" if body.trigger is None else body.trigger.type,
        started_at=first.timestamp,
        ended_at=None if last is None else last.timestamp,
        state=_turn_state(done),
        artifact="" if done is None else done.artifact,
        error="" if done is None else done.error,
        error_kind="" if done is None else done.error_kind,
        asks=() if done is None else done.asks,
        tokens=0 if done is None else done.input_tokens + done.output_tokens,
        cost_usd=None if done is None else done.cost_usd,
    )


def _end_of_turn(of_turn: Sequence[Event]) -> Event | None:
    """The last end that was told, but for an end that only lost the turn to whoever ended it."""
    ends = [event for event in of_turn if isinstance(event.data, AgentTurnCompleted)]
    final = [event for event in ends if isinstance(event.data, AgentTurnCompleted) and not event.data.redelivered]
    return next(reversed(final or ends), None)


def _turn_state(done: AgentTurnCompleted | None) -> str:
    if done is None:
        return "running"
    if done.redelivered:
        return "redelivered"
    if done.failed:
        return MessageState.FAILED
    # Without a decision the turn lost its seat on the last delivery of its trigger.
    return done.decision or MessageState.FAILED


def _verdict(
    body: InboundDelivery, events: Sequence[Event], turns: Sequence[TurnView], asks: Sequence[Channel]
) -> _Verdict:
    for event in events:
        if isinstance(event.data, NotificationSkipped) and event.data.source_event_id == body.source_event_id:
            return _Verdict(MessageState.SKIPPED, reason=event.data.reason)
    end = _end_of_chain(body, events, turns, asks)
    if end is None:
        state = MessageState.WORKING if turns else MessageState.WAITING
        return _Verdict(state, answer=_last_artifact(body, turns), reason=_last_trouble(turns))
    if isinstance(end, TurnTriggerSkipped):
        reason = ": ".join(part for part in (end.reason, end.detail) if part)
        return _Verdict(MessageState.FAILED, reason=reason)
    return _verdict_of_end(end)


def _verdict_of_end(end: TurnView) -> _Verdict:
    match end.state:
        case MessageState.FAILED:
            return _Verdict(MessageState.FAILED, answer=end.artifact, reason=end.error or end.error_kind)
        case Decision.STOPPED:
            return _Verdict(MessageState.FAILED, answer=end.artifact, reason=end.error or "a person stopped the turn")
        case MessageState.SKIPPED:
            reason = "the seat decided that nothing was to be done"
            return _Verdict(MessageState.SKIPPED, answer=end.artifact, reason=reason)
        case _:
            return _Verdict(MessageState.ANSWERED, answer=end.artifact)


def _end_of_chain(
    body: InboundDelivery, events: Sequence[Event], turns: Sequence[TurnView], asks: Sequence[Channel]
) -> TurnView | TurnTriggerSkipped | None:
    """What the chain ended with: the turn that answers, or word that a wake of it was given up; ``None``: not yet."""
    ends: dict[str, TurnView | TurnTriggerSkipped] = {
        event.data.trigger_id: event.data for event in events if isinstance(event.data, TurnTriggerSkipped)
    }
    # Of several runs of the same work the last that answered stands: its answer may have been read by then.
    ended = sorted((turn for turn in turns if turn.state not in _UNENDED), key=_has_answer)
    ends |= {turn.trigger_id: turn for turn in ended}
    closed = {ask.channel_id for ask in asks if ask.status is ChannelStatus.CLOSED}
    end = ends.get(wake_id(body.source_event_id, body.recipient))
    # No wake leads back to itself, so the walk is no longer than the chain.
    for _ in ends:
        if not isinstance(end, TurnView) or not end.asks:
            return end
        answers = [ends.get(answer_wake_id(ask)) for ask in end.asks]
        if not closed.issuperset(end.asks) or None in answers:
            return None
        end = answers[-1]
    return end


def _has_answer(turn: TurnView) -> bool:
    return turn.state not in _WITHOUT_ANSWER


def _last_artifact(body: InboundDelivery, turns: Sequence[TurnView]) -> str:
    said = [turn.artifact for turn in turns if turn.handle == body.recipient and turn.artifact]
    return said[-1] if said else ""


def _last_trouble(turns: Sequence[TurnView]) -> str:
    trouble = [turn.error or turn.error_kind for turn in turns if turn.state in ("redelivered", MessageState.FAILED)]
    return trouble[-1] if trouble else ""
