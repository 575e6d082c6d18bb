"""`crewlet seats pause` and `crewlet seats resume` against a real API."""

from __future__ import annotations

import asyncio
import json

import pytest

from crewlet.api import ApiServer
from crewlet.cli import main
from tests.unit.api.small_node import SmallNode

pytestmark = pytest.mark.slow

Said = pytest.CaptureFixture[str]


async def crewlet(*argv: str) -> int:
    return await asyncio.to_thread(main, [*argv])


async def test_a_pause_is_told_with_whom_and_why_and_shown_in_the_list(server: ApiServer, capsys: Said) -> None:
    code = await crewlet("seats", "pause", "ceo", "--reason", "audit", "--stop-running", "--url", server.url)
    said = capsys.readouterr().out
    await crewlet("seats", "--url", server.url)
    listed = capsys.readouterr().out

    assert code == 0
    assert said == (
        "ceo is paused by operator:tester since 2026-03-01T12:00:00Z: audit; the running turn ends at its next step\n"
    )
    assert "paused by operator:tester: audit" in listed


async def test_a_second_pause_says_that_the_first_stands(server: ApiServer, capsys: Said) -> None:
    await crewlet("seats", "pause", "ceo", "--reason", "audit", "--url", server.url)
    capsys.readouterr()

    await crewlet("seats", "pause", "ceo", "--reason", "another", "--url", server.url)

    assert capsys.readouterr().out.endswith(
        "was paused already, by operator:tester since 2026-03-01T12:00:00Z: audit\n"
    )


async def test_a_resume_says_what_it_ended(server: ApiServer, capsys: Said) -> None:
    await crewlet("seats", "pause", "ceo", "--url", server.url)
    capsys.readouterr()

    await crewlet("seats", "resume", "ceo", "--url", server.url)
    await crewlet("seats", "resume", "ceo", "--url", server.url)

    first, second = capsys.readouterr().out.splitlines()
    assert first == "ceo goes on; it was paused by operator:tester since 2026-03-01T12:00:00Z"
    assert second == "ceo was not paused"


async def test_options_given_before_the_verb_stand(server: ApiServer, node: SmallNode, capsys: Said) -> None:
    code = await crewlet("seats", "--url", server.url, "--json", "pause", "ceo")

    assert (code, json.loads(capsys.readouterr().out)["changed"]) == (0, True)
    assert "ceo" in node.pauses.standing


async def test_a_seat_that_is_not_there_is_named_and_exits_with_1(server: ApiServer, capsys: Said) -> None:
    code = await crewlet("seats", "pause", "ce", "--url", server.url)

    assert (code, "did you mean 'ceo'" in capsys.readouterr().err) == (1, True)


async def test_the_turn_that_a_seat_runs_is_listed_under_the_id_that_steering_takes(
    server: ApiServer, node: SmallNode, capsys: Said
) -> None:
    node.turn_id = "turn-7"

    await crewlet("seats", "--url", server.url)

    header, ceo, *_ = capsys.readouterr().out.splitlines()
    assert ceo[header.index("TURN") :].split()[0] == "turn-7"
