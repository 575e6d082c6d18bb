"""`crewlet steer` against a real API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewlet.api import ApiServer
from crewlet.cli import main
from tests.unit.api.small_node import TOKEN, SmallNode, config, serving

pytestmark = pytest.mark.slow

Said = pytest.CaptureFixture[str]


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ApiServer]:
    monkeypatch.setenv("CREWLET_API_TOKEN", TOKEN)
    async with serving(SmallNode(), config(tmp_path)) as server:
        yield server


async def crewlet(*argv: str) -> int:
    return await asyncio.to_thread(main, [*argv])


async def test_a_note_that_was_taken_is_told_with_its_id(server: ApiServer, capsys: Said) -> None:
    code = await crewlet("steer", "turn-1", "leave it", "--url", server.url)

    assert (code, capsys.readouterr().out) == (0, "taken: the turn reads it at its next round (note note-1)\n")


async def test_it_prints_json_on_demand(server: ApiServer, capsys: Said) -> None:
    await crewlet("steer", "turn-1", "leave it", "--json", "--url", server.url)

    assert json.loads(capsys.readouterr().out)["outcome"] == "accepted"


async def test_a_turn_that_has_ended_is_a_failure_that_says_what_to_do(server: ApiServer, capsys: Said) -> None:
    code = await crewlet("steer", "ended", "leave it", "--url", server.url)

    assert code != 0
    assert "write to its seat instead" in capsys.readouterr().err
