"""Where a seat stands: what is above it, and when that is another place."""

from __future__ import annotations

from typing import Any

import pytest

from crewlet.org import CompanyDocument, Organization, Seat, chain_hash, managers_above, organize, units_around


def company(**changes: object) -> Organization:
    """An engineer under a cto, in a team in a unit, all under a ceo."""
    team: dict[str, Any] = {"id": "team", "name": "Team", "roles": [{"name": "Engineer", "handle": "engineer"}]}
    document: dict[str, Any] = {
        "name": "Acme",
        "roles": [{"name": "Chief", "handle": "ceo", "manages": ["cto"]}],
        "units": [
            {
                "id": "engineering",
                "name": "Engineering",
                "lead": "cto",
                "roles": [{"name": "Technology", "handle": "cto"}],
                "children": [team],
            }
        ],
    }
    return organize(CompanyDocument.model_validate({**document, **changes}))


def seat(of: Organization, handle: str) -> Seat:
    found = of.seat(handle)
    assert found is not None
    return found


def test_above_a_seat_are_its_units_and_its_managers_from_the_top_down() -> None:
    acme = company()

    assert units_around(acme, seat(acme, "engineer")) == ("engineering", "team")
    assert managers_above(acme, seat(acme, "engineer")) == ("ceo", "cto")
    assert units_around(acme, seat(acme, "ceo")) == ()
    assert managers_above(acme, seat(acme, "ceo")) == ()


def test_of_seats_that_manage_each_other_each_is_above_the_other_once() -> None:
    roles = [{"name": name, "handle": name, "manages": [other]} for name, other in ("ab", "bc", "ca")]
    circle = company(roles=roles, units=[])

    assert managers_above(circle, seat(circle, "a")) == ("b", "c")


RENAMED = [{"name": "Boss", "handle": "ceo", "goal": "Lead", "manages": ["cto"]}]
NOBODY = [{"name": "Chief", "handle": "ceo"}]
OTHER = [{"name": "Chief", "handle": "president", "manages": ["cto"]}]


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({}, True),
        ({"mission": "Another", "roles": RENAMED}, True),
        ({"roles": NOBODY}, False),
        ({"roles": OTHER}, False),
        ({"units": [{"id": "team", "name": "Team", "roles": [{"name": "Engineer", "handle": "engineer"}]}]}, False),
    ],
    ids=["nothing", "words alone", "no manager above", "another manager above", "another unit"],
)
def test_a_place_is_another_as_soon_as_a_unit_or_a_manager_above_is(changes: dict[str, object], is_same: bool) -> None:
    before, after = company(), company(**changes)

    same = chain_hash(before, seat(before, "engineer")) == chain_hash(after, seat(after, "engineer"))

    assert same is is_same


def test_what_a_place_is_called_is_kept_by_every_release() -> None:
    acme = company()

    assert chain_hash(acme, seat(acme, "engineer")) == "47b4d93f90b78689"
