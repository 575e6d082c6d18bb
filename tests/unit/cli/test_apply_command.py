"""`crewlet apply` against a real API."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from crewlet.api import ApiServer
from crewlet.base.errors import ConfigError, Problem
from crewlet.cli import main
from crewlet.node.coverage import Coverage, NodeAnswered
from crewlet.node.fleet_tools import ToolFailure, ToolsView
from tests.unit.api.small_node import IN_PLACE, SmallNode

pytestmark = pytest.mark.slow

Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def document(tmp_path: Path) -> None:
    (tmp_path / "company.yaml").write_text("name: Acme\n")


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


def standing(*failures: ToolFailure, pending: tuple[str, ...] = (), silent: tuple[str, ...] = ()) -> ToolsView:
    nodes = [NodeAnswered(id=node, answered=False, error="no answer in time") for node in silent]
    coverage = Coverage(nodes=(*IN_PLACE.coverage.nodes, *nodes), complete=not silent)
    return ToolsView(epoch=2, failures=failures, pending=pending, coverage=coverage)


@pytest.mark.parametrize(
    ("stands", "said"),
    [
        (
            standing(ToolFailure(node="node-1", server="desk", seat="dev", error="no licence")),
            "crewlet: node-1: the tool server desk of dev does not serve: no licence",
        ),
        (
            standing(ToolFailure(node="node-1", server="wiki", seat="", error="no such file")),
            "crewlet: node-1: the tool server wiki does not serve: no such file",
        ),
        (
            standing(pending=("dev is not established with its own tools yet",)),
            "crewlet: not in place yet: dev is not established with its own tools yet",
        ),
        (standing(silent=("node-2",)), "crewlet: not known: node-2: no answer in time"),
    ],
)
async def test_what_is_in_force_and_does_not_serve_is_another_code_than_a_refusal(
    node: SmallNode, server: ApiServer, capsys: Said, stands: ToolsView, said: str
) -> None:
    node.standing = [stands]

    code = await apply(server, "--wait", "0")

    told = capsys.readouterr()
    assert (code, len(node.company.applied)) == (4, 1)
    assert "in force as number 2" in told.out
    assert said in told.err.splitlines()


async def test_what_failed_on_the_node_itself_once_it_was_in_force_is_no_refusal(
    node: SmallNode, server: ApiServer, capsys: Said
) -> None:
    node.company.trouble = "no answer from the store"

    assert await apply(server) == 4
    assert "crewlet: no answer from the store" in capsys.readouterr().err


async def test_it_waits_for_what_is_on_its_way(node: SmallNode, server: ApiServer, capsys: Said) -> None:
    node.standing = [standing(silent=("node-2",)), standing(pending=("node-2 still starts wiki",)), IN_PLACE]

    code = await apply(server)

    assert (code, node.tools_asked) == (0, 3)
    assert "node-2" not in capsys.readouterr().err


async def test_a_failure_does_not_end_the_wait_for_the_rest(node: SmallNode, server: ApiServer) -> None:
    failure = ToolFailure(node="node-1", server="wiki", seat="", error="no such file")
    node.standing = [standing(failure, pending=("node-2 still starts wiki",)), standing(failure)]

    assert await apply(server) == 4
    assert node.tools_asked == 2


async def test_a_check_asks_nobody_how_tools_stand(node: SmallNode, server: ApiServer) -> None:
    await apply(server, "--check")

    assert node.tools_asked == 0


async def test_json_holds_how_the_tools_stand(node: SmallNode, server: ApiServer, capsys: Said) -> None:
    code = await apply(server, "--json")

    answer = json.loads(capsys.readouterr().out)
    assert (code, answer["epoch"], answer["tools"]["coverage"]["complete"]) == (0, 2, True)


async def test_no_time_is_no_wait(server: ApiServer, capsys: Said) -> None:
    assert await apply(server, "--wait", "nan") == 2
    assert "--wait" in capsys.readouterr().err
