"""Handles, unit keys and agent ids."""

from __future__ import annotations

from uuid import uuid5

import pytest

from crewlet.base.errors import ConfigError
from crewlet.org import AGENT_NAMESPACE, CompanyDocument, Organization, mint, organize


def _company(**fields: object) -> Organization:
    return organize(CompanyDocument.model_validate({"name": "Acme", **fields}))


def test_a_handle_is_minted_from_the_name_when_absent() -> None:
    company = _company(roles=[{"name": "Chief  Executive Officer"}], units=[{"name": "Core Platform"}])

    assert [seat.handle for seat in company.seats] == ["chief-executive-officer"]
    assert [unit.key for unit in company.units] == ["core-platform"]


def test_a_written_handle_outlives_another_name() -> None:
    before = _company(roles=[{"name": "CEO", "handle": "ceo"}])
    after = _company(roles=[{"name": "Managing Director", "handle": "ceo"}])

    assert before.seats[0].agent_id == after.seats[0].agent_id


@pytest.mark.parametrize("name", ["R&D", "-lead", "Zoë", "x" * 65])
def test_a_name_that_makes_no_valid_handle_asks_for_one(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _company(roles=[{"name": name}])

    assert caught.value.problems[0].path == "roles[0].name"
    assert "handle" in caught.value.problems[0].remedy


def test_a_handle_is_unique_over_the_whole_company() -> None:
    with pytest.raises(ConfigError) as caught:
        _company(
            roles=[{"name": "CEO"}],
            units=[{"name": "A", "children": [{"name": "B", "roles": [{"name": "Boss", "handle": "ceo"}]}]}],
        )

    (problem,) = caught.value.problems
    assert problem.path == "units[0].children[0].roles[0].handle"
    assert "roles[0]" in problem.problem


def test_humans_and_agents_share_one_set_of_handles() -> None:
    with pytest.raises(ConfigError, match="already that of"):
        _company(roles=[{"name": "Ann", "kind": "human", "contact": {"github_login": "ann"}}, {"name": "ann"}])


def test_a_unit_key_is_unique_over_the_whole_tree() -> None:
    with pytest.raises(ConfigError) as caught:
        _company(units=[{"name": "Ops"}, {"name": "Other", "children": [{"name": "ops"}]}])

    assert caught.value.problems[0].path == "units[1].children[0].name"


@pytest.mark.spec("S-176")
def test_an_agent_id_follows_from_company_name_and_handle_alone() -> None:
    company = _company(roles=[{"name": "CEO", "handle": "ceo"}])

    seat = company.agent_seat_by_handle("ceo")

    assert seat is not None
    assert company.agent_id_for(seat) == str(uuid5(AGENT_NAMESPACE, "Acme:ceo"))
    assert company.agent_id_for(seat) == "7e3088c7-7cf3-5b81-9783-9bb72b793ae1"


def test_renaming_the_company_gives_every_agent_another_id() -> None:
    roles = [{"name": "CEO"}]
    other = organize(CompanyDocument.model_validate({"name": "Acme Inc", "roles": roles}))

    assert other.seats[0].agent_id != _company(roles=roles).seats[0].agent_id


def test_an_agent_is_found_by_handle_by_id_and_by_a_unique_name() -> None:
    company = _company(
        roles=[{"name": "The Boss", "handle": "ceo"}, {"name": "Dev"}, {"name": "Dev", "handle": "dev-2"}]
    )
    ceo = company.seats[0]

    assert company.agent_seat_by_id(company.agent_id_for(ceo)) is ceo
    assert company.find_seat("ceo") is ceo
    assert company.find_seat(str(ceo.agent_id)) is ceo
    assert company.find_seat("The Boss") is ceo
    assert company.find_seat("Dev") is None


def test_a_human_is_no_agent_seat() -> None:
    company = _company(roles=[{"name": "Ann", "kind": "human", "contact": {"github_login": "ann"}}])

    assert company.agent_seat_by_handle("ann") is None
    assert company.seats[0].agent_id is None
    assert company.seat("ann") is company.human_seats[0]


def test_minting_lowers_and_hyphenates() -> None:
    assert mint(" Head  of\tSales ") == "head-of-sales"
