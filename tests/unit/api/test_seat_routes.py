"""Pausing and resuming a seat over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from tests.unit.api.small_node import SmallNode, asking, config, serving

pytestmark = pytest.mark.slow


@pytest.fixture
async def node() -> SmallNode:
    return SmallNode()


@pytest.fixture
async def api(node: SmallNode, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(node, config(tmp_path)) as server, asking(server) as client:
        yield client


async def test_a_seat_is_paused_by_whom_the_token_names_and_shown_so(api: httpx.AsyncClient) -> None:
    answer = await api.post("/seats/ceo/pause", json={"reason": "audit", "stop_running": True})
    seat = (await api.get("/seats")).json()["seats"][0]

    pause = {
        "by": "operator:tester",
        "by_seat": "",
        "at": "2026-03-01T12:00:00Z",
        "reason": "audit",
        "stop_running": True,
    }
    assert (answer.status_code, answer.json()) == (200, {"handle": "ceo", "paused": pause, "changed": True})
    assert (seat["activity"], seat["stopped_reason"], seat["paused"]) == ("stopped", "paused", pause)


async def test_a_pause_needs_no_body_and_stops_nothing_by_itself(api: httpx.AsyncClient) -> None:
    answer = (await api.post("/seats/ceo/pause")).json()

    assert (answer["paused"]["reason"], answer["paused"]["stop_running"]) == ("", False)


async def test_a_resume_says_which_pause_it_ended(api: httpx.AsyncClient) -> None:
    await api.post("/seats/ceo/pause", json={"reason": "audit"})

    first, second = [(await api.post("/seats/ceo/resume")).json() for _ in range(2)]

    assert (first["ended"]["reason"], second) == ("audit", {"handle": "ceo", "ended": None})


@pytest.mark.parametrize("verb", ["pause", "resume"])
@pytest.mark.parametrize(("handle", "status", "code"), [("ce", 404, "no_such_seat"), ("ada", 409, "not_an_agent")])
async def test_what_is_no_agents_seat_is_refused(
    api: httpx.AsyncClient, verb: str, handle: str, status: int, code: str
) -> None:
    answer = await api.post(f"/seats/{handle}/{verb}", json={} if verb == "pause" else None)

    assert (answer.status_code, answer.json()["error"]) == (status, code)


async def test_a_misspelt_field_and_a_novel_are_refused(api: httpx.AsyncClient) -> None:
    misspelt = await api.post("/seats/ceo/pause", json={"stop": True})
    novel = await api.post("/seats/ceo/pause", json={"reason": "x" * (limits.PAUSE_REASON_MAX_CHARS + 1)})

    assert (misspelt.status_code, novel.status_code) == (400, 400)


async def test_a_store_that_does_not_answer_leaves_the_outcome_unknown(node: SmallNode, api: httpx.AsyncClient) -> None:
    node.broken = Unavailable("no leader")

    answer = await api.post("/seats/ceo/pause")

    assert (answer.status_code, answer.json()["outcome"]) == (503, "unknown")
