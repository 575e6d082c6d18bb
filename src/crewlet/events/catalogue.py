"""Where each event type is filed, which types are rows, and which rows are kept out of the feed (S2)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from crewlet.events.envelope import Event

__all__ = ["CATEGORIES", "NOT_FED", "NOT_STORED", "Category", "category_of", "is_failed", "is_fed", "is_stored"]


class Category(StrEnum):
    """The closed set of categories that events are filed under and filtered by."""

    LIFECYCLE = "lifecycle"
    TASK = "task"
    A2A = "a2a"
    DECISION = "decision"
    NOTIFICATION = "notification"
    LEARNING = "learning"
    SYSTEM = "system"
    WEBHOOK = "webhook"


CATEGORIES: Final[dict[str, Category]] = {
    "org_started": Category.LIFECYCLE,
    "org_stopped": Category.LIFECYCLE,
    "config_revision_activated": Category.LIFECYCLE,
    "config_revision_applied": Category.LIFECYCLE,
    "seat_paused": Category.LIFECYCLE,
    "seat_resumed": Category.LIFECYCLE,
    "task_assigned": Category.TASK,
    "a2a_channel_opened": Category.A2A,
    "a2a_message_sent": Category.A2A,
    "a2a_channel_closed": Category.A2A,
    "decision_requested": Category.DECISION,
    "decision_resolved": Category.DECISION,
    "contribution_requested": Category.DECISION,
    "contribution_received": Category.DECISION,
    "external_notification": Category.NOTIFICATION,
    "notification_skipped": Category.NOTIFICATION,
    "notifications_coalesced": Category.NOTIFICATION,
    "turn_trigger_skipped": Category.NOTIFICATION,
    "agent_turn_started": Category.SYSTEM,
    "agent_turn_completed": Category.SYSTEM,
    "agent_turn_steered": Category.SYSTEM,
    "agent_turn_stopped": Category.SYSTEM,
    "agent_phase_started": Category.SYSTEM,
    "agent_phase_completed": Category.SYSTEM,
    "budget_exhausted": Category.SYSTEM,
    "llm_unavailable": Category.SYSTEM,
    "prompt.size": Category.SYSTEM,
    "provider_fallback": Category.SYSTEM,
    "subagent_batched": Category.SYSTEM,
    "turn.guard_breach": Category.SYSTEM,
    "turn_charge_uncounted": Category.SYSTEM,
    "inbound_delivery": Category.WEBHOOK,
}
"""The admission list: a type that is not in it is neither stored nor fed."""

NOT_STORED: Final[dict[str, str]] = {
    "agent_spawned": "placement moves seats on every rebalance; live only",
    "agent_terminated": "placement moves seats on every rebalance; live only",
    "agent_turn_progress": "live only; agent_phase_completed is its durable record",
    "budget_meters": "live only; what the counters say at the next tick supersedes it",
    "raw_webhook": "the delivery is routed on as an external_notification, which is a row",
    "a2a_request": "the ask is a row as a2a_channel_opened and a2a_message_sent",
    "a2a_message": "the answer is a row as a2a_message_sent",
}
"""Types that are deliberately no rows, each with its reason."""

NOT_FED: Final[frozenset[str]] = frozenset()
"""Types that are rows but accounting rather than activity: kept out of the feed."""

_FAILURES: Final = frozenset({"llm_unavailable", "budget_exhausted", "turn.guard_breach", "sandbox_run_failed"})


def category_of(event_type: str) -> Category | None:
    """The category a type is filed under, or ``None`` for a type that is no row."""
    return CATEGORIES.get(event_type)


def is_stored(event_type: str) -> bool:
    """Whether events of this type become rows of the event log."""
    return event_type in CATEGORIES


def is_fed(event_type: str) -> bool:
    """Whether rows of this type belong to the activity feed."""
    return event_type in CATEGORIES and event_type not in NOT_FED


def is_failed(event: Event) -> bool:
    """Whether the event tells of a failure: by its type, or by its body's ``failed`` field."""
    if event.type in _FAILURES:
        return True
    said = getattr(event.data, "failed", event.extra.get("failed"))
    return said is True
