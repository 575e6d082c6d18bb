"""What arrived from outside, and what the engine decided about it."""

from __future__ import annotations

from typing import Any, ClassVar

from crewlet.events.body import Body, register

__all__ = ["ExternalNotification", "InboundDelivery", "NotificationSkipped", "RawWebhook", "TurnTriggerSkipped"]


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

    ``reply`` is who is owed an answer and how: ``none``, ``tool`` or ``engine``.
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
