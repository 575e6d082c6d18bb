"""What every event says of itself: who, what, where it stands in its trace, and which node published it."""

from __future__ import annotations

import inspect
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from crewlet.base.trace import Trace
from crewlet.events import Body, new_event, register
from crewlet.events.types import (
    AgentSpawned,
    AgentTurnProgress,
    ExternalNotification,
    InboundDelivery,
    LlmUnavailable,
    OrgStarted,
)
from crewlet.testing import SeededIds
from tests.unit.events.samples import BODIES, NOON, TRACE, full_event

_WHO = {
    "agent_turn_steered": "operator:ada",
    "agent_turn_stopped": "operator:ada",
    "a2a_channel_closed": "cto",
    "a2a_channel_opened": "ceo",
    "a2a_message": "cto",
    "a2a_message_sent": "cto",
    "a2a_request": "ceo",
    "budget_meters": "engine",
    "config_revision_activated": "operator:ada",
    "config_revision_applied": "engine",
    "external_notification": "ada",
    "inbound_delivery": "ada",
    "notification_skipped": "engine",
    "notifications_coalesced": "ceo",
    "org_started": "engine",
    "org_stopped": "engine",
    "raw_webhook": "ada",
    "seat_paused": "operator:ada",
    "seat_resumed": "operator:bob",
    "task_assigned": "scheduler",
    "turn_trigger_skipped": "ceo",
}


@pytest.mark.spec("E-153")
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.event_type)
def test_every_type_says_who_did_what(body: Body) -> None:
    event = full_event(body)

    assert event.actor == _WHO.get(body.event_type, "Chief Executive")
    assert event.summary != event.type
    assert "\n" not in event.summary


@pytest.mark.spec("E-153")
def test_the_actor_is_the_role_then_the_source_then_the_agent_s_id_then_the_system() -> None:
    event = full_event(AgentSpawned(agent_handle="ceo", agent_id="agent-1", role="Chief Executive"))
    without_role = replace(event, data=AgentSpawned(agent_handle="ceo", agent_id="agent-1"))
    without_source = replace(without_role, source="")
    without_all = replace(without_source, data=AgentSpawned(agent_handle="ceo"))

    actors = [each.actor for each in (event, without_role, without_source, without_all)]

    assert actors == ["Chief Executive", "engine", "agent-1", "system"]


def test_an_unknown_type_is_summed_up_by_its_name_and_acted_by_what_it_kept() -> None:
    event = replace(full_event(OrgStarted(company="Acme")), data=None, source="", extra={"agent_id": "agent-1"})

    assert event.summary == "org_started"
    assert event.actor == "agent-1"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            InboundDelivery(integration="operator", label="operator:message", recipient="ceo", sender="operator:ada"),
            "message of operator:ada for ceo",
        ),
        (AgentTurnProgress(turn_id="t1", agent_handle="ceo", phase="execute", state="opened"), "ceo: execute opened"),
        (
            AgentTurnProgress(turn_id="t1", agent_handle="ceo", phase="execute", round_num=2, state="calling"),
            "ceo: execute round 2 calling",
        ),
        (
            LlmUnavailable(turn_id="t1", agent_handle="ceo", chain=("down",), error="down: network: no answer"),
            "no model answered ceo (down): down: network: no answer",
        ),
    ],
)
def test_a_summary_reads_as_a_sentence(body: Body, says: str) -> None:
    assert full_event(body).summary == says


def test_a_summary_is_cut_to_a_line_s_length() -> None:
    event = full_event(ExternalNotification(integration="operator", agent_handle="ceo", salient_body="x" * 5000))

    assert len(event.summary) < 200


@pytest.mark.spec("E-149")
def test_stamping_a_node_leaves_the_publisher_s_event_as_it_was() -> None:
    event = replace(full_event(OrgStarted(company="Acme")), node="")

    stamped = event.stamped("node-1")

    assert (stamped.node, event.node) == ("node-1", "")
    assert replace(stamped, node="") == event


def test_an_event_that_names_its_node_keeps_it() -> None:
    event = replace(full_event(OrgStarted(company="Acme")), node="node-0")

    assert event.stamped("node-1") is event


@pytest.mark.spec("E-183")
def test_an_event_s_trace_is_what_its_maker_was_given() -> None:
    given = Trace("1" * 32, "2" * 16, "3" * 16)

    event = new_event(OrgStarted(company="Acme"), trace=given, now=NOON, ids=SeededIds(1))

    assert event.trace == given
    assert inspect.signature(new_event).parameters["trace"].default is inspect.Parameter.empty


def test_ids_are_fresh_unless_given() -> None:
    ids = SeededIds(1)

    made = [new_event(OrgStarted(company="Acme"), trace=TRACE, now=datetime.now(UTC), ids=ids) for _ in range(2)]

    assert made[0].id != made[1].id
    assert len(made[0].id) == 36


@pytest.mark.spec("E-152")
def test_a_body_cannot_declare_a_field_of_the_envelope() -> None:
    class Colliding(Body, frozen=True, kw_only=True):
        event_type = "colliding"
        node: str

    with pytest.raises(ValueError, match="node"):
        register(Colliding)


def test_two_bodies_cannot_share_a_type() -> None:
    class Second(Body, frozen=True, kw_only=True):
        event_type = "org_started"

    with pytest.raises(ValueError, match="org_started"):
        register(Second)
