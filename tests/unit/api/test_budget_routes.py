"""What was spent, over HTTP."""

from __future__ import annotations

from pathlib import Path

from crewlet.node.budget_views import budgets_view
from tests.unit.api.small_node import NOW, SmallNode, asking, config, serving
from tests.unit.node.companies import acme


async def test_every_scope_is_listed_with_each_of_its_windows(tmp_path: Path) -> None:
    node = SmallNode()
    async with serving(node, config(tmp_path)) as server, asking(server) as client:
        answer = await client.get("/budgets")

    said = answer.json()
    assert (answer.status_code, said["durable"], said["timezone"]) == (200, True, "UTC")
    assert [(scope["scope"][:5], scope["handle"]) for scope in said["scopes"]] == [("org", ""), ("agent", "ceo")]
    assert said["scopes"][0]["windows"][1] == {
        "period": "week",
        "label": "2026-W09",
        "used": 0,
        "max": 9,
        "state": "ok",
        "refused_at": None,
        "resets_at": "2026-03-02T00:00:00Z",
    }


async def test_counters_that_cannot_be_read_are_an_answer_that_says_so(tmp_path: Path) -> None:
    node = SmallNode()
    node.budget = budgets_view(acme(), None, NOW)
    async with serving(node, config(tmp_path)) as server, asking(server) as client:
        answer = await client.get("/budgets")

    said = answer.json()
    assert (answer.status_code, said["durable"]) == (200, False)
    assert {(w["used"], w["state"]) for scope in said["scopes"] for w in scope["windows"]} == {(None, "unknown")}
