"""Telling a running turn something, over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from crewlet.base import limits
from tests.unit.api.small_node import SmallNode, asking, config, serving

pytestmark = pytest.mark.slow


@pytest.fixture
async def node() -> SmallNode:
    return SmallNode()


@pytest.fixture
async def api(node: SmallNode, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(node, config(tmp_path)) as server, asking(server) as client:
        yield client


async def test_a_note_is_taken_from_whom_the_token_names(api: httpx.AsyncClient, node: SmallNode) -> None:
    answer = await api.post("/turns/turn-1/steer", json={"note": "leave it", "note_id": "mine"})

    assert (answer.status_code, answer.json()) == (
        202,
        {"turn_id": "turn-1", "note_id": "mine", "outcome": "accepted"},
    )
    assert node.steering.taken == [("turn-1", "leave it", "operator:tester")]


@pytest.mark.parametrize(
    ("turn", "status", "code"),
    [("nobody", 404, "no_such_turn"), ("ended", 409, "turn_ended"), ("full", 429, "too_many_notes")],
)
async def test_a_note_that_no_turn_takes_is_refused(api: httpx.AsyncClient, turn: str, status: int, code: str) -> None:
    answer = await api.post(f"/turns/{turn}/steer", json={"note": "leave it"})

    assert (answer.status_code, answer.json()["error"]) == (status, code)


@pytest.mark.parametrize(
    "body",
    [{}, {"note": ""}, {"note": "  "}, {"note": "x" * (limits.STEER_NOTE_MAX_CHARS + 1)}, {"note": "x", "more": 1}],
    ids=["none", "empty", "blank", "long", "more"],
)
async def test_what_is_no_note_is_refused_by_name(api: httpx.AsyncClient, body: dict[str, object]) -> None:
    answer = await api.post("/turns/turn-1/steer", json=body)

    assert answer.status_code == 400
    assert answer.json()["error"] == "bad_request"
