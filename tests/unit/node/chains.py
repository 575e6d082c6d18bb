"""A chain of turns as the log tells it, written down step by step; what the tests of a message's standing fold."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from crewlet.a2a import answer_wake_id, request_wake_id
from crewlet.base.trace import Trace
from crewlet.coordination import Channel, ChannelStatus, opened
from crewlet.events import Body, Event, new_event
from crewlet.events.types import (
    A2aChannelOpened,
    AgentTurnCompleted,
    AgentTurnStarted,
    InboundDelivery,
    NotificationSkipped,
    TriggerSummary,
    TurnTriggerSkipped,
)
from crewlet.node import MessageView
from crewlet.node.message_view import message_view
from crewlet.notify import wake_id
from crewlet.testing import SeededIds

START = datetime(2030, 1, 1, tzinfo=UTC)
MESSAGE = "m-1"
WAKE = wake_id(MESSAGE, "ceo")


@dataclass
class Chain:
    """What followed from one message to the ceo. Each event stands ``step_s`` after the one before, on its clock."""

    step_s: float = 1.0
    now: datetime = START
    events: list[Event] = field(default_factory=list[Event])
    asks: dict[str, Channel] = field(default_factory=dict[str, Channel])
    ids: SeededIds = field(default_factory=lambda: SeededIds(4))
    turns: int = 0

    def begins(self, handle: str, trigger_id: str) -> str:
        """The id of a turn that runs from now on."""
        self.turns += 1
        turn_id = f"t{self.turns}"
        summary = TriggerSummary(id=trigger_id, type="any")
        self.tells(AgentTurnStarted(turn_id=turn_id, agent_handle=handle, trigger=summary))
        return turn_id

    def ends(
        self,
        turn_id: str,
        artifact: str = "",
        *,
        decision: str = "done",
        asks: tuple[str, ...] = (),
        failed: bool = False,
        redelivered: bool = False,
        error: str = "",
    ) -> None:
        self.tells(
            AgentTurnCompleted(
                turn_id=turn_id,
                artifact=artifact,
                decision="failed" if failed else decision,
                asks=asks,
                failed=failed,
                redelivered=redelivered,
                error=error,
            )
        )

    def runs(self, handle: str, trigger_id: str, artifact: str = "") -> str:
        """A whole turn that came to an answer."""
        turn_id = self.begins(handle, trigger_id)
        self.ends(turn_id, artifact)
        return turn_id

    def asked(self, turn_id: str, channel_id: str, requester: str, target: str) -> None:
        self.asks[channel_id] = opened(channel_id=channel_id, requester=requester, target=target, at=START)
        self.tells(A2aChannelOpened(channel_id=channel_id, requester=requester, target=target, turn_id=turn_id))

    def asks_and_waits(self, handle: str, trigger_id: str, channel_id: str, target: str) -> None:
        """A whole turn that opened an ask."""
        turn_id = self.begins(handle, trigger_id)
        self.asked(turn_id, channel_id, handle, target)
        self.ends(turn_id, f"I have asked {target}", asks=(channel_id,))

    def stands(self, channel_id: str, status: ChannelStatus) -> None:
        self.asks[channel_id] = replace(self.asks[channel_id], status=status)

    def closes(self, channel_id: str) -> None:
        self.stands(channel_id, ChannelStatus.CLOSED)

    def gives_up(self, handle: str, trigger_id: str, reason: str, *, abandoned: bool = True) -> None:
        self.tells(TurnTriggerSkipped(agent_handle=handle, trigger_id=trigger_id, reason=reason, abandoned=abandoned))

    def refused(self, reason: str, *, source_event_id: str = MESSAGE) -> None:
        self.tells(NotificationSkipped(integration="operator", reason=reason, source_event_id=source_event_id))

    def tells(self, body: Body) -> None:
        self.now += timedelta(seconds=self.step_s)
        self.events.append(new_event(body, trace=Trace("trace", "span"), now=self.now, ids=self.ids))

    def view(self) -> MessageView:
        """The standing, from the events as the log orders them: by time, then by id."""
        body = InboundDelivery(
            integration="operator",
            label="operator:message",
            recipient="ceo",
            sender="operator:local",
            body="What should we build first?",
            source_event_id=MESSAGE,
        )
        delivery = new_event(body, trace=Trace("trace", "span"), now=START, ids=self.ids)
        in_order = sorted(self.events, key=lambda event: (event.timestamp, event.id))
        return message_view(delivery, in_order, list(self.asks.values()))


def request_of(channel_id: str) -> str:
    return request_wake_id(channel_id)


def answer_of(channel_id: str) -> str:
    return answer_wake_id(channel_id)
