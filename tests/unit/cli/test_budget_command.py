"""`crewlet budgets show` against a real API."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from crewlet.api import ApiServer
from crewlet.cli import main
from crewlet.node.budget_views import budgets_view
from crewlet.testing.ports import free_ports
from tests.unit.api.small_node import NOW, SmallNode
from tests.unit.node.companies import acme

pytestmark = pytest.mark.slow

Said = pytest.CaptureFixture[str]


async def show(server: ApiServer, *argv: str) -> int:
    return await asyncio.to_thread(main, ["budgets", "show", *argv, "--url", server.url])


async def test_the_companys_windows_and_those_with_a_ceiling_are_a_table(server: ApiServer, capsys: Said) -> None:
    code = await show(server)

    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert code == 0
    assert [row[:6] for row in rows] == [
        ["(company)", "day", "2026-03-01", "0", "-", "ok"],
        ["(company)", "week", "2026-W09", "0", "9", "ok"],
        ["(company)", "month", "2026-03", "0", "-", "ok"],
        ["ceo", "day", "2026-03-01", "0", "100", "ok"],
    ]


async def test_every_window_is_shown_where_all_are_wanted(server: ApiServer, capsys: Said) -> None:
    await show(server, "--all")

    assert len(capsys.readouterr().out.splitlines()) == 1 + 6


async def test_json_is_the_answer_as_it_came(server: ApiServer, capsys: Said) -> None:
    await show(server, "--json")

    assert set(json.loads(capsys.readouterr().out)) == {"durable", "timezone", "scopes"}


@pytest.mark.spec("C-216")
def test_without_a_node_that_runs_the_command_says_so_and_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crewlet.yaml").write_text(f"data_dir: data\napi: {{port: {free_ports(1)[0]}}}\n")

    code = main(["budgets", "show"])

    assert code == 1
    assert "start one with `crewlet run`" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["crewlet.yaml"]


async def test_unread_counters_are_shown_as_unknown_and_fail_the_command(
    node: SmallNode, server: ApiServer, capsys: Said
) -> None:
    node.budget = budgets_view(acme(), None, NOW)

    code = await show(server)

    said = capsys.readouterr()
    assert code == 1
    assert said.out.splitlines()[1].split()[3:6] == ["?", "-", "unknown"]
    assert "not known" in said.err
