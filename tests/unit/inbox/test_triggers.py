"""What wakes a turn, and what the turn inherits from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from crewlet.base.trace import Trace
from crewlet.events import Body, Event, new_event
from crewlet.events.types import A2aMessage, A2aRequest, AgentSpawned, ExternalNotification, TaskAssigned
from crewlet.inbox import LEDGERED, Reply, Trigger, UnreadableTrigger, runs_turn, trigger_of, work_key_of
from crewlet.notify import OperatorSource, Sources
from crewlet.testing import SeededIds

_NOW = datetime(2026, 3, 1, tzinfo=UTC)
_TRACE = Trace("a" * 32, "b" * 16)


def _event(body: Body, *, delegation_depth: int = 0) -> Event:
    return new_event(body, trace=_TRACE, now=_NOW, ids=SeededIds(1), delegation_depth=delegation_depth)


def _trigger(handle: str, event: Event, *, headroom: int) -> Trigger:
    assert runs_turn(event)
    return trigger_of(handle, [event], Sources([OperatorSource()]), headroom=headroom)


_BODIES: dict[str, Body] = {
    "external_notification": ExternalNotification(
        integration="operator", agent_handle="ceo", body="Hi", reply="engine"
    ),
    "task_assigned": TaskAssigned(agent_handle="ceo", task="Report"),
    "a2a_request": A2aRequest(channel_id="c1", requester="ceo", target="cto", brief="Which database?"),
    "a2a_message": A2aMessage(channel_id="c1", requester="ceo", responder="cto", brief="?", content="SQLite"),
}


@pytest.mark.spec("S-119")
@pytest.mark.parametrize("event_type", sorted(_BODIES))
def test_each_ledgered_type_is_a_trigger(event_type: str) -> None:
    """The closed set of types that are recorded is exactly the set that runs a turn."""
    trigger = _trigger("ceo", _event(_BODIES[event_type]), headroom=24)

    assert set(_BODIES) == LEDGERED
    assert trigger.trace == _TRACE


def test_another_event_on_the_inbox_runs_no_turn() -> None:
    """What is no trigger is dropped, so that it never counts as worked."""
    assert not runs_turn(_event(AgentSpawned(agent_handle="ceo")))


@pytest.mark.spec("S-087")
def test_the_work_key_is_the_same_for_the_same_constituents() -> None:
    """A re-run of the same work has the same key, in whatever order its constituents came."""
    assert work_key_of(["e1", "e2"]) == work_key_of(["e2", "e1"])
    assert work_key_of(["e1", "e2"]) != work_key_of(["e1"])


def test_an_answer_hands_on_what_the_asking_turn_owed() -> None:
    """The turn that an answer wakes knows the task, the obligation and the ask of the turn that had asked."""
    body = A2aMessage(
        channel_id="c2",
        requester="cto",
        responder="dev",
        brief="How long?",
        content="Two days",
        task="Plan the release",
        answers_channel="c1",
        reply="engine",
    )

    trigger = _trigger("cto", _event(body, delegation_depth=1), headroom=24)

    assert (trigger.task, trigger.answers_channel, trigger.reply) == ("Plan the release", "c1", Reply.ENGINE)
    assert trigger.delegation_depth == 1


def test_an_ask_is_answered_by_the_engine_on_its_channel() -> None:
    """Whoever is asked owes the artifact to the channel of the ask."""
    trigger = _trigger("cto", _event(_BODIES["a2a_request"]), headroom=3)

    assert (trigger.reply, trigger.answers_channel, trigger.headroom) == (Reply.ENGINE, "c1", 3)


@pytest.mark.parametrize("event_type", sorted(_BODIES))
def test_work_whose_body_cannot_be_read_is_refused_and_not_dropped(event_type: str) -> None:
    """A body of another release decodes to none: acknowledging it would lose somebody's work without a word."""
    event = replace(_event(_BODIES[event_type]), data=None)

    with pytest.raises(UnreadableTrigger, match=event_type):
        _trigger("ceo", event, headroom=24)


def test_an_obligation_of_another_release_is_refused_by_name() -> None:
    body = ExternalNotification(integration="operator", agent_handle="ceo", body="Hi", reply="carrier pigeon")

    with pytest.raises(UnreadableTrigger, match="carrier pigeon"):
        _trigger("ceo", _event(body), headroom=24)
