from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from pydantic import TypeAdapter

from crewlet.api.app import build_app
from crewlet.api.config import ApiLimits
from crewlet.api.event_rows import record, stored_row
from crewlet.api.hub import Hub
from crewlet.api.models import EventPage, EventRecord, TurnRecord
from crewlet.base.clock import SystemClock
from crewlet.events.types import AgentTurnStarted
from crewlet.node.message_view import turn_views
from tests.unit.api.small_node import Chronicle, SmallNode


@pytest.fixture
def document() -> dict[str, Any]:
    node = SmallNode()
    return build_app(node, Hub(node, SystemClock(), ApiLimits())).openapi()


def _operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{verb.upper()} {path}": said for path, verbs in document["paths"].items() for verb, said in verbs.items()}


def test_every_route_but_the_probes_asks_for_the_bearer_token(document: dict[str, Any]) -> None:
    guarded = {name: said.get("security") for name, said in _operations(document).items()}

    assert guarded == {name: None if name in ("GET /health", "GET /ready") else [{"bearer": []}] for name in guarded}
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


def test_every_route_says_what_it_does_and_how_it_refuses(document: dict[str, Any]) -> None:
    for name, said in _operations(document).items():
        assert said["description"], name
        assert said["responses"]["4XX"]["content"]["application/json"]["schema"]["$ref"].endswith("RefusalEnvelope"), (
            name
        )
        assert "422" not in said["responses"], name


def test_the_stream_and_the_refusals_are_described(document: dict[str, Any]) -> None:
    assert "/ws/stream" in document["info"]["description"]
    assert '"error": code' in document["info"]["description"]


def test_views_of_the_node_are_described_by_their_own_fields(document: dict[str, Any]) -> None:
    schemas = cast("dict[str, Any]", document["components"]["schemas"])

    assert {"Health", "SeatView", "MessageView", "TurnView", "AskView"} <= set(schemas)
    assert "artifact" in schemas["TurnView"]["properties"]


def test_answers_written_by_hand_fit_their_description() -> None:
    stored = Chronicle().row(AgentTurnStarted(turn_id="t", agent_handle="ceo"))
    turn = turn_views([stored.event])[0]
    hand_written: list[tuple[Any, Any]] = [
        (EventPage, {"events": [stored_row(stored)], "next": None}),
        (EventRecord, record(stored)),
        (TurnRecord, {"turn": turn, "events": [record(stored)]}),
    ]

    for model, answer in hand_written:
        raw = msgspec.json.encode(answer)
        parsed = TypeAdapter(model).validate_json(raw)
        assert TypeAdapter(model).dump_python(parsed, mode="json").keys() == msgspec.json.decode(raw).keys()
