"""Leads, managers, channels and variables: what the tree hands down."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from crewlet.org import CompanyDocument, Organization, organize


def _company(**fields: object) -> Organization:
    return organize(CompanyDocument.model_validate({"name": "Acme", **fields}))


def _manages(company: Organization) -> Mapping[str, tuple[str, ...]]:
    return {seat.handle: seat.manages for seat in company.seats if seat.manages}


def _seats(*names: str, **fields: object) -> list[dict[str, object]]:
    return [{"name": name, **fields} for name in names]


def test_a_unit_without_a_lead_has_that_of_the_nearest_unit_around_it() -> None:
    company = _company(
        roles=_seats("a", "b"),
        units=[
            {
                "name": "top",
                "lead": "a",
                "children": [
                    {"name": "middle", "children": [{"name": "bottom"}]},
                    {"name": "own", "lead": "b", "children": [{"name": "below"}]},
                ],
            },
            {"name": "alone"},
        ],
    )

    assert {unit.key: unit.lead for unit in company.units} == {
        "top": "a",
        "middle": "a",
        "bottom": "a",
        "own": "b",
        "below": "b",
        "alone": None,
    }


def test_a_lead_manages_the_direct_members_whom_no_direct_member_manages() -> None:
    company = _company(
        units=[
            {
                "name": "u",
                "lead": "lead",
                "roles": [
                    {"name": "lead"},
                    {"name": "senior", "manages": ["junior"]},
                    {"name": "junior"},
                ],
            },
        ],
    )

    assert _manages(company) == {"lead": ("senior",), "senior": ("junior",)}


def test_a_lead_never_manages_who_manages_it() -> None:
    company = _company(
        units=[{"name": "u", "lead": "lead", "roles": [{"name": "chair", "manages": ["lead"]}, {"name": "lead"}]}],
    )

    assert _manages(company) == {"chair": ("lead",)}


def test_a_manager_outside_the_unit_does_not_shield_from_the_lead() -> None:
    company = _company(
        roles=[{"name": "outsider", "manages": ["member"]}],
        units=[{"name": "u", "lead": "lead", "roles": _seats("lead", "member")}],
    )

    assert _manages(company) == {"outsider": ("member",), "lead": ("member",)}


def test_an_inherited_lead_manages_the_members_of_the_unit_inside() -> None:
    company = _company(
        units=[{"name": "u", "lead": "a", "roles": _seats("a"), "children": [{"name": "v", "roles": _seats("b")}]}],
    )

    assert _manages(company) == {"a": ("b",)}


def test_a_unit_in_manages_means_every_seat_of_its_subtree_but_the_lister() -> None:
    company = _company(
        units=[
            {
                "name": "Big Unit",
                "roles": [{"name": "boss", "manages": ["big-unit"]}, {"name": "x"}],
                "children": [{"name": "small", "roles": _seats("y")}],
            },
        ],
    )

    assert _manages(company) == {"boss": ("x", "y")}


def test_in_manages_a_seat_wins_over_a_unit() -> None:
    company = _company(
        roles=[{"name": "boss", "manages": ["ops"]}, {"name": "ops", "handle": "operations"}],
        units=[{"name": "ops", "roles": _seats("x")}],
    )

    assert _manages(company) == {"boss": ("operations",)}


def test_a_reference_may_be_a_unique_name() -> None:
    company = _company(
        roles=[{"name": "Boss", "manages": ["The Dev", "The Unit"]}, {"name": "The Dev", "handle": "dev"}],
        units=[{"name": "The Unit", "id": "u", "lead": "The Dev", "roles": _seats("x")}],
    )

    assert _manages(company) == {"boss": ("dev", "x"), "dev": ("x",)}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"roles": [{"name": "a", "manages": ["nobody"]}]}, "roles[0].manages[0]"),
        ({"roles": [{"name": "a", "manages": ["a"]}]}, "roles[0].manages[0]"),
        ({"units": [{"name": "u", "lead": "nobody"}]}, "units[0].lead"),
        (
            {"roles": [{"name": "a", "manages": ["Twin"]}, *_seats("Twin"), {"name": "Twin", "handle": "t"}]},
            "roles[0].manages[0]",
        ),
    ],
)
def test_a_reference_that_names_nothing_is_reported_and_never_fatal(fields: dict[str, object], path: str) -> None:
    company = _company(**fields)

    assert [problem.path for problem in company.dangling] == [path]
    assert _manages(company) == {}


def test_the_manager_is_the_first_in_walk_order_who_lists_the_seat() -> None:
    company = _company(
        units=[{"name": "u", "lead": "lead", "roles": _seats("lead", "member")}],
        roles=[{"name": "root", "manages": ["member"]}],
    )

    manager = company.manager("member")

    assert manager is not None
    assert manager.handle == "root"
    assert company.manager("root") is None
    assert [seat.handle for seat in company.reports("lead")] == ["member"]


def test_seats_stand_in_walk_order() -> None:
    company = _company(
        units=[
            {"name": "u", "children": [{"name": "v", "roles": _seats("c")}], "roles": _seats("b")},
            {"name": "w", "roles": _seats("d")},
        ],
        roles=_seats("a"),
    )

    assert [seat.handle for seat in company.seats] == ["a", "b", "c", "d"]
    assert [unit.key for unit in company.units] == ["u", "v", "w"]


def test_a_channel_is_inherited() -> None:
    company = _company(
        units=[{"name": "u", "channel": "#u", "children": [{"name": "v"}, {"name": "w", "channel": "#w"}]}],
    )

    assert [unit.channel for unit in company.units] == ["#u", "#u", "#w"]


def test_unit_variables_lie_under_those_of_direct_agents_alone() -> None:
    company = _company(
        mcp_servers=[{"name": "crm", "command": "crm", "shared": False}],
        units=[
            {
                "name": "u",
                "mcp_env": {"crm": {"REGION": "eu", "MODE": "read"}},
                "roles": [
                    {"name": "agent", "mcp_env": {"crm": {"MODE": "write"}}},
                    {"name": "person", "kind": "human", "contact": {"github_login": "p"}},
                ],
                "children": [{"name": "v", "roles": _seats("below")}],
            }
        ],
    )

    assert {seat.handle: seat.mcp_env for seat in company.seats} == {
        "agent": {"crm": {"REGION": "eu", "MODE": "write"}},
        "person": {},
        "below": {},
    }


def test_nothing_in_an_organisation_can_be_changed() -> None:
    company = _company(
        roles=[{"name": "a", "llm": {"review": "m"}, "mcp_env": {"s": {"X": "1"}}}],
        mcp_servers=[{"name": "s", "command": "c", "shared": False, "env": {"Y": "2"}}],
        providers={"llm": {"m": {"type": "openai", "model": "x"}}},
    )
    mappings: list[object] = [
        company.models,
        company.seats[0].mcp_env,
        company.seats[0].mcp_env["s"],
        company.seats[0].contact,
        company.seats[0].models.by_phase,
        company.tool_servers[0].env,
    ]

    for mapping in mappings:
        assert not hasattr(mapping, "__setitem__")
