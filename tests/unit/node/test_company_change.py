"""What a node takes for changed between two companies."""

from __future__ import annotations

from typing import Any

import pytest

from crewlet.node.company_change import CompanyChange, company_change
from crewlet.org import CompanyDocument, Organization, organize

NOTHING = CompanyChange(added=(), removed=(), changed=(), tools_renewed=(), models=(), tool_servers=())
SCRIPT = {"type": "scripted", "script": "script.yaml"}


def a_company(*roles: dict[str, Any], **fields: object) -> Organization:
    document = {"name": "Acme", "providers": {"llm": {"default": SCRIPT}}, "roles": list(roles), **fields}
    return organize(CompanyDocument.model_validate(document))


def agent(handle: str, **fields: object) -> dict[str, Any]:
    return {"name": handle.upper(), "handle": handle, **fields}


def servers(**fields: object) -> list[dict[str, object]]:
    return [{"name": "desk", "command": "desk", "shared": False, **fields}, {"name": "wall", "command": "wall"}]


def test_the_same_company_changes_nothing() -> None:
    assert company_change(a_company(agent("ceo")), a_company(agent("ceo"))) == NOTHING


@pytest.mark.parametrize(
    "after",
    [
        a_company(agent("ceo"), token_budget={"day": 5}),
        a_company(agent("ceo", token_budget={"day": 5})),
        a_company(agent("ceo"), timezone="Europe/Paris"),
    ],
)
def test_what_may_be_spent_and_the_clock_of_it_are_ceilings(after: Organization) -> None:
    assert company_change(a_company(agent("ceo")), after).ceilings


def test_seats_that_came_left_or_differ_are_told_apart() -> None:
    before = a_company(agent("ceo"), agent("ops"), agent("cto"))
    after = a_company(agent("ceo"), agent("cto", goal="Build"), agent("dev"))

    change = company_change(before, after)

    assert (change.added, change.removed, change.changed) == (("dev",), ("ops",), ("cto",))
    assert change.tools_renewed == ()


def test_a_seats_own_servers_are_renewed_where_their_template_or_its_environment_changed() -> None:
    with_desk, without = agent("ceo", mcp_env={"desk": {"WHO": "ceo"}}), agent("cto")
    other_env = agent("ceo", mcp_env={"desk": {"WHO": "${CEO}"}})
    before = a_company(with_desk, without, mcp_servers=servers())

    by_template = company_change(before, a_company(with_desk, without, mcp_servers=servers(args=["--new"])))
    by_environment = company_change(before, a_company(other_env, without, mcp_servers=servers()))

    assert by_template.tools_renewed == by_environment.tools_renewed == ("ceo",)
    assert (by_template.tool_servers, by_environment.tool_servers) == (("desk",), ())


def test_a_shared_server_that_changed_renews_no_seat() -> None:
    seat = agent("ceo", mcp_env={"desk": {}})
    changed = [servers()[0], {"name": "wall", "command": "wall", "args": ["--high"]}]

    change = company_change(a_company(seat, mcp_servers=servers()), a_company(seat, mcp_servers=changed))

    assert (change.tools_renewed, change.tool_servers) == ((), ("wall",))


def test_models_that_came_left_or_changed_are_named() -> None:
    before = a_company(agent("ceo"), providers={"llm": {"default": SCRIPT, "old": SCRIPT, "same": SCRIPT}})
    other = {"type": "scripted", "script": "other.yaml"}
    after = a_company(agent("ceo"), providers={"llm": {"default": other, "new": SCRIPT, "same": SCRIPT}})

    assert set(company_change(before, after).models) == {"default", "old", "new"}
