"""`crewlet coordination` against a real API: what it prints where, and how it ends."""

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
async def company(monkeypatch: pytest.MonkeyPatch) -> SmallNode:
    monkeypatch.setenv("CREWLET_API_TOKEN", TOKEN)
    node = SmallNode()
    for number in (1, 2, 3):
        await node.stores["ledger"].create(f"ceo.e{number}", b'{"outcome": "done", "text": "\\u001b[2J"}')
    await node.stores["secrets"].create("secret.KEY", b'{"sealed": "c2VjcmV0"}')
    return node


@pytest.fixture
async def server(company: SmallNode, tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with serving(company, config(tmp_path)) as server:
        yield server


async def crewlet(server: ApiServer, *argv: str) -> int:
    return await asyncio.to_thread(main, ["coordination", *argv, "--url", server.url])


async def test_the_slots_are_a_table(server: ApiServer, capsys: Said) -> None:
    code = await crewlet(server, "ls")

    header, ledger, secrets = capsys.readouterr().out.splitlines()
    assert (code, header.split()) == (0, ["SLOT", "AGE", "CLASSES", "WHY"])
    assert ledger.split()[:3] == ["ledger", "7", "d"]
    assert secrets.split()[:3] == ["secrets", "kept", "secret"]


@pytest.mark.parametrize("key", ["..", ".", "ceo\udcff", "", "a/../b"])
async def test_what_can_be_no_key_is_refused_and_never_another_question(
    server: ApiServer, capsys: Said, key: str
) -> None:
    code = await crewlet(server, "get", "ledger", key)

    said = capsys.readouterr()
    assert (code, said.out) == (1, "")
    assert said.err.startswith("crewlet: ")
    assert "key" in said.err or "no record" in said.err


@pytest.mark.parametrize("asked", [["ceo\udcff"], ["ceo", "--after", "\udcff"], ["a" * 70_000]])
async def test_a_class_that_is_no_text_or_has_no_end_is_no_internal_error(
    server: ApiServer, capsys: Said, asked: list[str]
) -> None:
    code = await crewlet(server, "ls", "ledger", *asked)

    assert code in (0, 1)
    assert "internal" not in capsys.readouterr().err


async def test_records_are_a_table_and_say_that_there_are_more(server: ApiServer, capsys: Said) -> None:
    code = await crewlet(server, "ls", "ledger", "ceo", "--limit", "2")

    said = capsys.readouterr()
    header, *rows = said.out.splitlines()
    assert (code, header.split()) == (0, ["KEY", "REVISION", "WRITTEN", "VALUE"])
    assert [row.split()[:2] for row in rows] == [["ceo.e1", "1"], ["ceo.e2", "2"]]
    assert "--after ceo.e2" in said.err
    assert "\x1b" not in said.out


async def test_one_record_is_shown_whole(server: ApiServer, capsys: Said) -> None:
    code = await crewlet(server, "get", "ledger", "ceo:e1")

    head, body = capsys.readouterr().out.split("\n\n", 1)
    assert (code, json.loads(body)["outcome"]) == (0, "done")
    assert head.splitlines()[0].split() == ["key:", "ceo.e1"]


async def test_a_sealed_value_is_not_printed(server: ApiServer, capsys: Said) -> None:
    codes = [
        await crewlet(server, "ls", "secrets"),
        await crewlet(server, "get", "secrets", "secret.KEY"),
        await crewlet(server, "get", "secrets", "secret.KEY", "--json"),
    ]

    said = capsys.readouterr().out
    assert codes == [0, 0, 0]
    assert "c2VjcmV0" not in said
    assert said.count("(sealed, 22 bytes)") == 2


async def test_nothing_found_is_said_apart_from_the_output(server: ApiServer, capsys: Said) -> None:
    code = await crewlet(server, "ls", "ledger", "cto")

    assert (code, *capsys.readouterr()) == (0, "", "crewlet: no record in ledger under 'cto'\n")


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (("ls", "leses"), "no slot is called 'leses'"),
        (("ls", "ledger"), "name one"),
        (("get", "ledger", "ceo.e9"), "holds no record 'ceo.e9'"),
    ],
)
async def test_what_is_not_there_is_an_error_that_names_it(
    server: ApiServer, capsys: Said, argv: tuple[str, ...], problem: str
) -> None:
    code = await crewlet(server, *argv)

    said = capsys.readouterr()
    assert (code != 0, said.out) == (True, "")
    assert problem in said.err


async def test_an_unreachable_store_fails_and_prints_nothing(
    server: ApiServer, company: SmallNode, capsys: Said
) -> None:
    company.buckets["ledger"].cut = True

    code = await crewlet(server, "ls", "ledger", "ceo")

    assert (code != 0, capsys.readouterr().out) == (True, "")
