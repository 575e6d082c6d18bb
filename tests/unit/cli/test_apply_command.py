"""`crewlet apply` against a real API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crewlet.api import ApiServer
from crewlet.base.errors import ConfigError, Problem
from crewlet.cli import main
from tests.unit.api.small_node import TOKEN, SmallNode, config, serving

pytestmark = pytest.mark.slow

Said = pytest.CaptureFixture[str]


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> SmallNode:
    monkeypatch.setenv("CREWLET_API_TOKEN", TOKEN)
    return SmallNode()


@pytest.fixture
async def server(node: SmallNode, tmp_path: Path) -> AsyncIterator[ApiServer]:
    (tmp_path / "company.yaml").write_text("name: Acme\n")
    async with serving(node, config(tmp_path)) as server:
        yield server


async def apply(server: ApiServer, *argv: str) -> int:
    return await asyncio.to_thread(main, ["apply", "company.yaml", *argv, "--url", server.url])


async def test_the_file_is_sent_as_written_and_what_changed_is_printed(
    node: SmallNode, server: ApiServer, capsys: Said
) -> None:
    code = await apply(server)

    said = capsys.readouterr()
    assert (code, node.company.applied) == (0, [("name: Acme\n", "operator:tester")])
    assert said.out.splitlines() == [
        "seats added: dev",
        "seats removed: ops",
        "seats whose tools start anew: cto",
        "models changed: fast",
        "Acme: in force as number 2",
    ]
    assert "its next start runs its own company file" in said.err
    assert "company.yaml:3: warning: roles[0]: odd (even)" in said.err


async def test_a_check_says_that_nothing_was_changed(node: SmallNode, server: ApiServer, capsys: Said) -> None:
    code = await apply(server, "--check")

    assert (code, node.company.applied) == (0, [])
    assert "nothing was changed" in capsys.readouterr().out


async def test_a_wrong_document_is_told_by_file_and_line(node: SmallNode, server: ApiServer, capsys: Said) -> None:
    node.company.refusal = ConfigError(Problem("roles[0].llm", "no such model", "name another", 7))

    code = await apply(server)

    assert code == 2
    assert "company.yaml:7: roles[0].llm: no such model (name another)" in capsys.readouterr().err
