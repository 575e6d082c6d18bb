"""`crewlet message` against a real API."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from crewlet.api import ApiServer
from crewlet.cli import main
from crewlet.node.coverage import Coverage, NodeAnswered
from tests.unit.api.small_node import SmallNode, answered

pytestmark = pytest.mark.slow

Said = pytest.CaptureFixture[str]


async def message(server: ApiServer, *argv: str) -> int:
    return await asyncio.to_thread(main, ["message", "m-1", *argv, "--url", server.url])


async def test_the_answer_is_printed_and_how_the_message_stands_is_said_beside_it(
    node: SmallNode, server: ApiServer, capsys: Said
) -> None:
    node.messages["m-1"] = answered()

    code = await message(server)

    said = capsys.readouterr()
    assert (code, said.out, said.err) == (0, "hello\n", "crewlet: ceo: answered\n")


@pytest.mark.parametrize(("state", "code"), [("failed", 1), ("skipped", 1), ("waiting", 3), ("working", 3)])
async def test_a_script_can_tell_what_failed_from_what_is_not_over(
    node: SmallNode, server: ApiServer, capsys: Said, state: str, code: int
) -> None:
    node.messages["m-1"] = replace(answered(), state=state, answer="", reason="the seat is stopped: paused")

    assert await message(server) == code
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"crewlet: ceo: {state}: the seat is stopped: paused\n")


async def test_what_was_said_before_the_message_is_final_is_not_printed_as_its_answer(
    node: SmallNode, server: ApiServer, capsys: Said
) -> None:
    node.messages["m-1"] = replace(answered(), state="working", answer="I ask our CTO.")

    assert await message(server) == 3
    assert capsys.readouterr().out == ""


async def test_a_node_that_did_not_answer_is_named(node: SmallNode, server: ApiServer, capsys: Said) -> None:
    silent = (NodeAnswered(id="a", answered=True), NodeAnswered(id="b", answered=False, error="no answer in time"))
    node.messages["m-1"] = replace(answered(), coverage=Coverage(nodes=silent, complete=False))

    await message(server, "--json")
    shown = json.loads(capsys.readouterr().out)
    await message(server)

    assert shown["coverage"]["complete"] is False
    assert "without what b may know" in capsys.readouterr().err
