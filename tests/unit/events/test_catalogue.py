"""Where each type is filed, and that none is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crewlet.events import (
    CATEGORIES,
    NOT_FED,
    NOT_STORED,
    Body,
    Category,
    body_types,
    category_of,
    is_failed,
    is_fed,
    is_stored,
)
from crewlet.events.types import A2aMessage, AgentTurnCompleted, LlmUnavailable, OrgStarted, TurnGuardBreach
from tests.unit.events.samples import full_event


def test_every_registered_type_is_placed_exactly_once() -> None:
    placed = {name for name in body_types() if (name in CATEGORIES) != (name in NOT_STORED)}

    assert placed == set(body_types())


def test_every_type_that_is_no_row_says_why() -> None:
    assert all(reason for reason in NOT_STORED.values())
    assert not NOT_STORED.keys() & CATEGORIES.keys()


@pytest.mark.spec("E-112")
def test_the_categories_are_a_closed_set() -> None:
    assert [category.value for category in Category] == [
        "lifecycle",
        "task",
        "a2a",
        "decision",
        "notification",
        "learning",
        "system",
        "webhook",
    ]


@pytest.mark.spec("E-123")
def test_the_decision_types_are_filed_and_have_no_body() -> None:
    decisions = {name for name, category in CATEGORIES.items() if category is Category.DECISION}

    assert decisions == {
        "decision_requested",
        "decision_resolved",
        "contribution_requested",
        "contribution_received",
    }
    assert not decisions & body_types().keys()


_FILED: dict[Category, str] = {
    Category.LIFECYCLE: "org_started org_stopped config_revision_activated config_revision_applied operator_acted"
    " backup_requested seat_paused seat_resumed",
    Category.TASK: "task_assigned sandbox_run_started sandbox_clarification_requested sandbox_run_completed"
    " sandbox_run_failed sandbox_run_answered scheduled_task_fired",
    Category.A2A: "a2a_channel_opened a2a_message_sent a2a_channel_closed",
    Category.DECISION: "decision_requested decision_resolved contribution_requested contribution_received",
    Category.NOTIFICATION: "external_notification notification_skipped notifications_coalesced turn_trigger_skipped",
    Category.LEARNING: "turn_completed episode_written persist_decider_completed counterparty_profile_updated"
    " reflection_completed skill_synthesized skill_refined skill_promoted skill_used skill_staled skill_archived"
    " skill_revived prefetch_summary knowledge_read compaction_requested compaction_completed",
    Category.SYSTEM: "agent_turn_started agent_turn_completed agent_turn_stopped agent_turn_steered"
    " agent_phase_started agent_phase_completed auxiliary_spend budget_exhausted turn.guard_breach llm_unavailable"
    " provider_fallback subagent_batched phase.tool_skill_blocked skill_telemetry_write_failed prompt.size",
    Category.WEBHOOK: "inbound_delivery",
}
"""Where every type belongs, those of parts to come as well."""


@pytest.mark.spec("E-113", "E-124", "E-128")
@pytest.mark.parametrize("category", Category)
def test_what_belongs_into_a_category_is_filed_there(category: Category) -> None:
    belongs = _FILED[category].split()

    elsewhere = {name: CATEGORIES[name] for name in belongs if CATEGORIES.get(name, category) is not category}

    assert elsewhere == {}
    assert [name for name in belongs if name in body_types() and name not in CATEGORIES] == []


def test_a_type_that_nobody_filed_is_neither_stored_nor_fed() -> None:
    assert category_of("from_a_successor") is None
    assert not is_stored("from_a_successor")
    assert not is_fed("from_a_successor")


def test_what_is_kept_out_of_the_feed_is_a_row_all_the_same() -> None:
    assert set(CATEGORIES) >= NOT_FED
    assert is_fed("org_started")


@pytest.mark.parametrize(
    ("body", "failed"),
    [
        (LlmUnavailable(turn_id="t"), True),
        (TurnGuardBreach(turn_id="t", kind="stall"), True),
        (AgentTurnCompleted(turn_id="t", failed=True), True),
        (AgentTurnCompleted(turn_id="t"), False),
        (A2aMessage(channel_id="c", requester="a", responder="b", brief="", content="", failed=True), True),
        (OrgStarted(company="Acme"), False),
    ],
    ids=lambda value: value.event_type if isinstance(value, Body) else str(value),
)
def test_a_failure_is_known_by_its_type_or_by_its_own_word(body: Body, failed: bool) -> None:
    assert is_failed(full_event(body)) is failed


@pytest.mark.parametrize(("said", "failed"), [(True, True), (False, False), ("yes", False), (None, False)])
def test_an_unknown_type_fails_by_its_own_word_alone(said: object, failed: bool) -> None:
    event = replace(full_event(OrgStarted(company="Acme")), type="unknown", data=None, extra={"failed": said})

    assert is_failed(event) is failed
