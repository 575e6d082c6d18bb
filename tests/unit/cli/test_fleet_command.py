"""`crewlet fleet` against a real API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from crewlet.api import ApiServer
from crewlet.base.errors import Unavailable
from crewlet.cli import main
from crewlet.coordination import Lease
from tests.unit.api.small_node import NOW, TOKEN, SmallNode, config, serving

pytestmark = pytest.mark.slow

Said = pytest.CaptureFixture[str]


def lease(resource: str, node: str, **data: object) -> Lease:
    return Lease(resource, f"{node}:1", 3, NOW, NOW + timedelta(seconds=30), preferred=node, data=data)


@pytest.fixture
def company(monkeypatch: pytest.MonkeyPatch) -> SmallNode:
    monkeypatch.setenv("CREWLET_API_TOKEN", TOKEN)
    node = SmallNode()
    status = {"in_flight": 1, "posture": "serve", "version": "0.1.0"}
    node.presence = [
        lease("node:node-0", "node-0", roles=["seats", "data"], labels={"zone": "b"}, status=status),
        lease("node:node-1", "node-1", roles=["seats"]),
    ]
    node.leases = [lease("seat:ceo", "node-1")]
    return node


@pytest.fixture
async def server(company: SmallNode, tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with serving(company, config(tmp_path)) as server:
        yield server


async def fleet(server: ApiServer, *argv: str) -> int:
    return await asyncio.to_thread(main, ["fleet", *argv, "--url", server.url])


async def test_nodes_and_seats_are_two_tables(server: ApiServer, capsys: Said) -> None:
    code = await fleet(server)

    said = capsys.readouterr()
    nodes, seats = (table.splitlines() for table in said.out.split("\n\n"))
    assert code == 0
    assert nodes[1].split() == ["node-0", "(asked)", "0", "1", "seats,data", "zone=b", "serve", "0.1.0", "?", "30", "s"]
    assert nodes[2].split() == ["node-1", "1", "?", "seats", "-", "?", "?", "?", "30", "s"]
    assert [row.split()[:2] for row in seats[1:]] == [["ceo", "node-1"], ["cto", "(nobody)"]]
    assert "no live node has the role ingress, workers" in said.err


async def test_it_is_printed_as_json(server: ApiServer, capsys: Said) -> None:
    code = await fleet(server, "--json")

    answer = json.loads(capsys.readouterr().out)
    assert (code, answer["this_node"], len(answer["nodes"])) == (0, "node-0", 2)


async def test_a_store_that_does_not_answer_is_no_empty_fleet(
    server: ApiServer, company: SmallNode, capsys: Said
) -> None:
    company.broken = Unavailable("no leader")

    code = await fleet(server)

    assert (code != 0, capsys.readouterr().out) == (True, "")


async def test_a_duty_of_a_node_that_is_gone_is_shown_as_that(
    server: ApiServer, company: SmallNode, capsys: Said
) -> None:
    company.duties = [lease("worker:maintenance", "node-7"), lease("worker:scheduler", "node-1")]

    await fleet(server)

    said = capsys.readouterr()
    duties = said.out.split("\n\n")[2].splitlines()[1:]
    assert [row.split() for row in duties] == [
        ["maintenance", "node-7", "(gone)", "30", "s"],
        ["scheduler", "node-1", "30", "s"],
    ]
    assert "node-7 had the duty maintenance and is gone: a live node takes it in 30 s" in said.err
    assert "scheduler" not in said.err


async def test_a_duty_of_a_node_that_was_started_again_is_not_said_to_be_of_a_node_that_is_gone(
    server: ApiServer, company: SmallNode, capsys: Said
) -> None:
    company.duties = [replace(lease("worker:maintenance", "node-1"), owner="node-1:0")]

    await fleet(server)

    assert "an earlier process of node-1 had the duty maintenance and is gone" in capsys.readouterr().err


async def test_a_member_that_is_not_whole_is_named_with_the_reason_and_one_that_is_is_not(
    server: ApiServer, company: SmallNode, capsys: Said
) -> None:
    ill = {"posture": "serve", "member": "unhealthy", "member_error": "JetStream not enabled"}
    well = {"posture": "serve", "member": "healthy", "member_error": ""}
    company.presence = [
        lease("node:node-0", "node-0", roles=["seats"], status=ill),
        lease("node:node-1", "node-1", roles=["seats"], status=well),
    ]

    await fleet(server)

    said = capsys.readouterr()
    assert "serve, member unhealthy" in said.out.splitlines()[1]
    assert "member" not in said.out.splitlines()[2]
    assert "node-0: its broker, as a member, is unhealthy: JetStream not enabled" in said.err
    assert "node-1" not in said.err
