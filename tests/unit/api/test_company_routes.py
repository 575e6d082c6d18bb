"""Reading and replacing the company over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from crewlet.base.errors import ConfigError, Conflict, Problem
from crewlet.node.company_change import ApplyUnderWay
from tests.unit.api.small_node import SmallNode, asking, config, serving

pytestmark = pytest.mark.slow

DOCUMENT = {"document": "name: Acme"}


@pytest.fixture
async def node() -> SmallNode:
    return SmallNode()


@pytest.fixture
async def api(node: SmallNode, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(node, config(tmp_path)) as server, asking(server) as client:
        yield client


async def test_the_document_in_force_is_read_with_its_number(api: httpx.AsyncClient) -> None:
    assert (await api.get("/company")).json() == {
        "company": "Acme",
        "epoch": 1,
        "document": "name: Acme",
        "lasts": True,
    }


async def test_a_document_is_applied_by_whom_the_token_names_and_what_changed_is_told(
    node: SmallNode, api: httpx.AsyncClient
) -> None:
    answer = (await api.post("/company", json=DOCUMENT)).json()

    assert node.company.applied == [("name: Acme", "operator:tester")]
    assert (answer["epoch"], answer["lasts"]) == (2, False)
    assert answer["seats"] == {"added": ["dev"], "removed": ["ops"], "changed": []}
    assert answer["warnings"] == [{"path": "roles[0]", "problem": "odd", "remedy": "even", "line": 3}]


async def test_a_check_applies_nothing(node: SmallNode, api: httpx.AsyncClient) -> None:
    answer = await api.post("/company/check", json=DOCUMENT)

    assert (answer.status_code, answer.json()["tools_renewed"]) == (200, ["cto"])
    assert node.company.applied == []


async def test_a_document_that_is_wrong_is_refused_with_every_problem_and_its_place(
    node: SmallNode, api: httpx.AsyncClient
) -> None:
    node.company.refusal = ConfigError(
        Problem("roles[0].llm", "no such model", "name another", 7), Problem("name", "?")
    )

    answer = await api.post("/company", json=DOCUMENT)

    assert (answer.status_code, answer.json()["error"]) == (400, "bad_company")
    assert answer.json()["problems"][0] == {
        "path": "roles[0].llm",
        "problem": "no such model",
        "remedy": "name another",
        "line": 7,
        "file": "",
    }
    assert len(answer.json()["problems"]) == 2


@pytest.mark.parametrize(
    ("refusal", "code"),
    [(ApplyUnderWay("wait"), "apply_under_way"), (Conflict("k", expected=1, current=2), "company_moved")],
)
async def test_who_comes_second_is_told_so(
    node: SmallNode, api: httpx.AsyncClient, refusal: Exception, code: str
) -> None:
    node.company.refusal = refusal

    answer = await api.post("/company", json=DOCUMENT)

    assert (answer.status_code, answer.json()["error"]) == (409, code)
