"""A seat on a real model looks around before its first work, once for as long as it keeps its place in the company."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewlet.testing.engines import Engine, run_command, running_engine
from crewlet.testing.model_servers import ModelServer
from tests.e2e.companies import KEYS, Json, company, notes_server, role, vendor
from tests.e2e.model_talk import Talk, calls, reviews, submits, talking_engine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as started:
        yield started


async def phases(engine: Engine) -> list[tuple[str, str]]:
    """The phases on record, the oldest first."""
    found = await engine.api.events("agent_phase_completed")
    return [(each["phase"], each["decision"]) for each in reversed(found)]


WORK = [("execute", "delivered"), ("review", "done")]


async def test_a_seat_is_onboarded_once_over_a_restart_and_again_at_another_place(
    tmp_path: Path, server: ModelServer
) -> None:
    llm = {"model": vendor("openai-compatible", server.openai_url)}
    defaults: dict[str, object] = {"turn_engine": {}, "mcp_servers": [notes_server()]}
    server.will(
        calls("list_mcp_server_tools", server="notes"),
        calls("activate_tool", name="list_notes"),
        calls("list_notes"),
        calls("mark_onboarded", notes="I keep the board."),
        submits("First."),
        reviews(),
        submits("Second."),
        reviews(),
    )
    async with talking_engine(tmp_path, role("ceo", "model"), llm=llm, server=server, **defaults) as talk:
        assert (await talk.ask("One?"))["answer"] == "First."
        assert (await talk.ask("Two?"))["answer"] == "Second."
        assert await phases(talk.engine) == [("onboarding", "onboarded"), *WORK, *WORK]
        (shown,) = (await talk.engine.api.get("/coordination/positions", **{"class": "onboarding"}))["records"]
        files = talk.files

    server.will(submits("Third."), reviews(), calls("mark_onboarded"), submits("Fourth."), reviews())
    async with running_engine(files, environment=KEYS) as engine:
        talk = Talk(engine, server)
        assert (await talk.ask("Three?"))["answer"] == "Third."
        moved: list[Json] = [role("boss", "model", manages=["ceo"]), role("ceo", "model")]
        (tmp_path / "moved.yaml").write_text(json.dumps(company(*moved, llm=llm, **defaults)))
        assert (await run_command("apply", "moved.yaml", cwd=tmp_path)).code == 0
        assert (await talk.ask("Four?"))["answer"] == "Fourth."

        assert await phases(engine) == [
            *[("onboarding", "onboarded"), *WORK, *WORK],
            *WORK,
            *[("onboarding", "onboarded"), *WORK],
        ]
        (now,) = (await engine.api.get("/coordination/positions", **{"class": "onboarding"}))["records"]
        assert now["value"]["chain_hash"] != shown["value"]["chain_hash"]
        assert now["value"]["claimed_by"] == ""
