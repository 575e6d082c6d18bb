"""Events to bytes and back, with everything that this build does not know."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crewlet.events import Body, Event, MalformedEvent, decode, encode
from crewlet.events.body import ENVELOPE_FIELDS
from crewlet.events.types import AgentPhaseCompleted, AgentTurnStarted, OrgStarted, TriggerSummary
from tests.unit.events.samples import BODIES, NOON, TRACE, full_event

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_NAMES = st.text(min_size=1).filter(lambda name: name not in ENVELOPE_FIELDS)


def _flat(event: Event) -> dict[str, Any]:
    return msgspec.json.decode(encode(event), type=dict[str, Any])


def _decoded(flat: dict[str, Any]) -> Event:
    return decode(msgspec.json.encode(flat))


@pytest.mark.slow
@pytest.mark.spec("E-154")
@settings(deadline=None)
@given(fields=st.dictionaries(_NAMES, _JSON, max_size=5), payload=st.dictionaries(st.text(), _JSON, max_size=3))
def test_an_unknown_type_goes_through_untouched(fields: dict[str, Any], payload: dict[str, Any]) -> None:
    flat = {
        **fields,
        "id": "1",
        "type": "from_a_successor",
        "timestamp": "2026-03-01T12:00:00.5Z",
        "payload": {"a": payload},
    }

    event = _decoded(flat)
    again = _flat(event)

    assert event.data is None
    assert event.extra == fields
    assert again == {**flat, "timestamp": "2026-03-01T12:00:00.500000Z"}


@pytest.mark.slow
@pytest.mark.spec("E-154")
@settings(deadline=None)
@given(body=st.sampled_from(BODIES), fields=st.dictionaries(_NAMES, _JSON, max_size=5))
def test_unknown_fields_of_a_known_type_go_through_untouched(body: Body, fields: dict[str, Any]) -> None:
    more = {name: value for name, value in fields.items() if name not in body.__struct_fields__}
    flat = {**more, **_flat(full_event(body))}

    event = _decoded(flat)

    assert event.data == body
    assert event.extra == more
    assert _flat(event) == flat


@pytest.mark.spec("E-154")
def test_unknown_fields_inside_a_body_s_own_structs_go_through_untouched() -> None:
    flat = _flat(full_event(next(body for body in BODIES if isinstance(body, AgentPhaseCompleted))))
    flat["trigger"]["urgency"] = "high"
    flat["rounds"].append({**flat["rounds"][0], "round": 2, "cost_usd": 0.25})
    flat["tool_executions"][0]["steers"] = [{"note": "faster"}]

    event = _decoded(flat)

    assert isinstance(event.data, AgentPhaseCompleted)
    assert event.data.rounds[1].round == 2
    assert _flat(event) == flat


def test_what_a_successor_said_of_a_struct_never_overwrites_the_body() -> None:
    flat = _flat(full_event(AgentTurnStarted(turn_id="t", trigger=TriggerSummary(id="1", type="task_assigned"))))
    flat["trigger"]["urgency"] = "high"
    event = _decoded(flat)

    changed = replace(event, data=AgentTurnStarted(turn_id="t", trigger=TriggerSummary(id="2", type="a2a_request")))
    emptied = replace(event, data=AgentTurnStarted(turn_id="t"))

    assert _flat(changed)["trigger"] == {"id": "2", "type": "a2a_request", "urgency": "high"}
    assert "trigger" not in _flat(emptied)


def test_a_known_type_whose_fields_do_not_fit_keeps_them() -> None:
    flat = {**_flat(full_event(OrgStarted(company="Acme"))), "seats": "many"}

    event = _decoded(flat)

    assert event.data is None
    assert _flat(event) == flat


@pytest.mark.spec("E-147")
def test_every_field_of_the_envelope_survives() -> None:
    event = full_event(OrgStarted(company="Acme"))

    again = decode(encode(event))

    assert again == event
    assert again.trace == TRACE
    assert (again.delegation_depth, again.parent_turn_id, again.delegation_chain) == (2, "turn-6", ("board", "ceo"))


@pytest.mark.spec("E-152")
def test_nothing_else_can_pass_for_a_field_of_the_envelope() -> None:
    event = replace(full_event(OrgStarted(company="Acme")), node="", extra={"node": "somewhere", "id": "2"})

    flat = _flat(event)

    assert "node" not in flat
    assert flat["id"] == event.id
    assert _flat(event.stamped("node-1"))["node"] == "node-1"


def test_an_instant_of_another_zone_is_the_same_instant_after_the_wire() -> None:
    there = datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    event = replace(full_event(OrgStarted(company="Acme")), timestamp=there)

    assert decode(encode(event)).timestamp == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert decode(encode(replace(event, timestamp=NOON))).timestamp.microsecond == 123456


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"id":"1","type":"x"}',
        b'{"id":"1","type":"x","timestamp":"soon"}',
        b'{"id":1,"type":"x","timestamp":"2026-03-01T12:00:00Z"}',
        b'{"a":' * 100_000,
    ],
    ids=["empty", "list", "cut", "not_text", "no_timestamp", "no_instant", "no_text_id", "too_deep"],
)
def test_bytes_that_are_no_event_are_refused(raw: bytes) -> None:
    with pytest.raises(MalformedEvent):
        decode(raw)


@settings(deadline=None)
@given(raw=st.binary())
def test_any_bytes_are_an_event_or_refused(raw: bytes) -> None:
    with pytest.raises(MalformedEvent):
        decode(raw)
