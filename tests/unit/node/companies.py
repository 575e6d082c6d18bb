"""A small company that the tests of the node's views look at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crewlet.config import Variables
from crewlet.node import CompanySource
from crewlet.org import CompanyDocument, Organization, Seat, organize

__all__ = ["acme", "seat_of", "source"]


def acme(**changes: object) -> Organization:
    """A ceo over a cto and an engineer in a unit, and Ann, a person."""
    document: dict[str, object] = {
        "name": "Acme",
        "mission": "Notes for all",
        "vision": "No paper",
        "policies": ["Be kind"],
        "roles": [
            {"name": "Chief", "handle": "ceo", "goal": "Lead", "email": "chief@acme.example"},
            {
                "name": "Ann",
                "handle": "ann",
                "kind": "human",
                "email": "Ann@acme.example",
                "contact": {"slack_user_id": "U1"},
                "availability": "mornings",
            },
        ],
        "units": [
            {
                "name": "Engineering",
                "purpose": "Builds it",
                "goals": ["Ship"],
                "lead": "cto",
                "roles": [
                    {"name": "Technology", "handle": "cto"},
                    {"name": "Engineer", "handle": "eng", "responsibilities": ["code"]},
                ],
            }
        ],
        "providers": {"llm": {"default": {"type": "scripted", "script": "script.yaml"}}},
    }
    return organize(CompanyDocument.model_validate({**document, **changes}))


def seat_of(company: Organization, handle: str) -> Seat:
    found = company.seat(handle)
    assert found is not None
    return found


def source(company: Organization, environment: Mapping[str, str], folder: Path = Path("/company")) -> CompanySource:
    return CompanySource(company, folder, Variables(environment))
