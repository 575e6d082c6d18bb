"""What arrived from outside, and what the engine decided about it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

import msgspec

from crewlet.events.body import Body, register

__all__ = [
    "ExternalNotification",
    "InboundDelivery",
    "NotificationMessage",
    "NotificationSkipped",
    "NotificationsCoalesced",
    "RawWebhook",
    "TurnTriggerSkipped",
]


class NotificationMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the notifications that a digest was made of, and the span of the event that brought it."""

    event_id: str
    sender: str = ""
    salient_body: str = ""
    notification_type: str = ""
    timestamp: datetime | None = None
    metadata: dict[str, Any] = {}
    requires_recon: bool = False
    trace_id: str = ""
    span_id: str = ""


@register
class RawWebhook(Body, frozen=True, kw_only=True, omit_defaults=True):
    """One delivery from outside as it arrived, on its way to be routed; not stored."""

    event_type: ClassVar[str] = "raw_webhook"
    integration: str
    recipient: str = ""
    sender: str = ""
    body: str = ""
    metadata: dict[str, Any] = {}

    def summary(self) -> str:
        """From where it came."""
        return f"a delivery from {self.integration} for {self.recipient or 'whom it concerns'}"

    def actor(self) -> str:
        """The sender."""
        return self.sender


@register
class ExternalNotification(Body, frozen=True, kw_only=True, omit_defaults=True):
    """One notification routed to one seat; on its inbox it is a trigger.

    ``reply`` is who is owed an answer and how: ``none``, ``tool`` or ``engine``. ``partition_key`` says with what it
    may be merged, ``conversation_identity`` to which conversation it belongs (E-076). ``messages`` are the parts of
    one that was merged, oldest first, each of them in full.
    """

    event_type: ClassVar[str] = "external_notification"
    integration: str
    agent_handle: str
    agent_id: str = ""
    notification_type: str = ""
    sender: str = ""
    salient_body: str = ""
    body: str = ""
    metadata: dict[str, Any] = {}
    requires_recon: bool = False
    addressed: bool = False
    reply: str = "none"
    owes: str = ""
    partition_key: str = ""
    conversation_identity: str = ""
    trigger_position: str = ""
    messages: tuple[NotificationMessage, ...] = ()

    def summary(self) -> str:
        """Who wrote what to whom."""
        return f"{self.sender or self.integration} to {self.agent_handle}: {self.salient_body[:120]}"

    def actor(self) -> str:
        """The sender."""
        return self.sender


@register
class NotificationSkipped(Body, frozen=True, kw_only=True, omit_defaults=True):
    """A delivery that reached nobody. ``reason`` is one of a fixed set of phrases, ``detail`` says more."""

    event_type: ClassVar[str] = "notification_skipped"
    integration: str
    reason: str
    detail: str = ""
    recipient: str = ""
    sender: str = ""
    source_event_id: str = ""

    def summary(self) -> str:
        """Why it reached nobody."""
        return f"a delivery from {self.integration} for {self.recipient or 'nobody'} was skipped: {self.reason}"


@register
class NotificationsCoalesced(Body, frozen=True, kw_only=True, omit_defaults=True):
    """Several notifications of one partition were merged into one trigger (E-105).

    It names the partition, not the conversation: a question for a conversation's turns must not find batches.
    """

    event_type: ClassVar[str] = "notifications_coalesced"
    agent_handle: str
    integration: str
    partition_key: str
    work_key: str
    trigger_ids: tuple[str, ...]
    senders: tuple[str, ...] = ()

    def summary(self) -> str:
        """Whose notifications, and how many."""
        return f"{len(self.trigger_ids)} notifications for {self.agent_handle} through {self.integration} became one"

    def actor(self) -> str:
        """The seat."""
        return self.agent_handle


@register
class TurnTriggerSkipped(Body, frozen=True, kw_only=True, omit_defaults=True):
    """A trigger that runs no turn: worked already, or given up, with the reason."""

    event_type: ClassVar[str] = "turn_trigger_skipped"
    agent_handle: str
    trigger_id: str
    reason: str
    detail: str = ""
    agent_id: str = ""
    turn_id: str = ""
    work_key: str = ""
    abandoned: bool = False

    def summary(self) -> str:
        """Which seat skipped its trigger, and why."""
        return f"{self.agent_handle} skipped a trigger: {self.reason}"

    def actor(self) -> str:
        """The seat."""
        return self.agent_handle


@register
class InboundDelivery(Body, frozen=True, kw_only=True, omit_defaults=True):
    """One delivery as it was presented at the edge, addressed to ``recipient``; the row an operator looks for."""

    event_type: ClassVar[str] = "inbound_delivery"
    integration: str
    label: str
    recipient: str = ""
    sender: str = ""
    body: str = ""
    source_event_id: str = ""

    def summary(self) -> str:
        """Who sent what to whom."""
        what = self.label.removeprefix(f"{self.integration}:")
        return f"{what} of {self.sender} for {self.recipient}"

    def actor(self) -> str:
        """The sender."""
        return self.sender
