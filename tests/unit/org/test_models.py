"""Which models a phase of a seat's turn tries."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from crewlet.org import CompanyDocument, Organization, Phase, organize, skipped_models

_REAL = {"type": "openai-compatible", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
_SCRIPT = {"type": "scripted", "script": "s.yaml"}


def _company(role: dict[str, object], *entries: str, **more: Mapping[str, object]) -> Organization:
    models = {**dict.fromkeys(entries, _REAL), **more}
    written = {"name": "Acme", "roles": [{"name": "a", **role}], "providers": {"llm": models}}
    return organize(CompanyDocument.model_validate(written))


@pytest.mark.parametrize(
    ("role", "phase", "chain"),
    [
        ({}, Phase.EXECUTE, ("default",)),
        ({"llm": "x"}, Phase.EXECUTE, ("x",)),
        ({"llm": ["x", "y"]}, Phase.REVIEW, ("x", "y")),
        ({"llm": {"default": "x", "review": ["y", "x"]}}, Phase.REVIEW, ("y", "x")),
        ({"llm": {"default": "x", "review": "y"}}, Phase.ONBOARDING, ("x",)),
        ({"llm": {"default": "x", "review": "y"}, "llm_review": "default"}, Phase.REVIEW, ("default",)),
        ({"llm": "x", "llm_review": "y"}, Phase.REVIEW, ("y",)),
        ({"llm": "x", "llm_review": "y"}, Phase.AUXILIARY, ("x",)),
        ({"llm": {"default": "x", "judge": "y"}}, Phase.JUDGE, ("y",)),
        ({"llm": {"default": "x", "judge": "default"}, "llm_judge": "y"}, Phase.JUDGE, ("y",)),
        ({"llm": "x", "llm_judge": "y"}, Phase.REVIEW, ("x",)),
    ],
)
def test_a_phase_tries_the_most_particular_chain(role: dict[str, object], phase: Phase, chain: tuple[str, ...]) -> None:
    company = _company(role, "first", "default", "x", "y")

    assert company.model_chain(company.seats[0], phase) == chain


def test_without_an_entry_named_default_the_first_serves() -> None:
    company = _company({}, "first", "second")

    assert company.model_chain(company.seats[0], Phase.EXECUTE) == ("first",)


def test_a_company_without_models_has_empty_chains() -> None:
    company = _company({})

    assert company.model_chain(company.seats[0], Phase.EXECUTE) == ()


def test_a_skipped_entry_leaves_the_chain() -> None:
    company = _company({"llm": ["x", "y"]}, "x", "y")

    assert company.model_chain(company.seats[0], Phase.EXECUTE, skipped=frozenset({"x"})) == ("y",)


def test_a_seat_that_names_models_is_never_served_by_another() -> None:
    company = _company({"llm": "x"}, "default", "x")

    assert company.model_chain(company.seats[0], Phase.EXECUTE, skipped=frozenset({"x"})) == ()


def test_a_script_never_stands_behind_a_real_model() -> None:
    company = _company({"llm": ["offline", "x"]}, "x", offline=_SCRIPT)
    seat = company.seats[0]

    assert company.model_chain(seat, Phase.EXECUTE) == ("x",)
    assert company.model_chain(seat, Phase.EXECUTE, skipped=frozenset({"x"})) == ("offline",)


def test_an_entry_without_keys_needs_its_vendors_variable() -> None:
    claude: dict[str, object] = {"type": "anthropic", "model": "m"}
    two: dict[str, object] = {"type": "openai", "model": "m", "api_keys": ["${ONE}", "${TWO}"]}
    company = _company({}, "local", claude=claude, two=two)

    skipped = skipped_models(company.models, {"ONE"}.__contains__)

    assert {each.key: each.variables for each in skipped} == {"claude": ("ANTHROPIC_API_KEY",), "two": ("TWO",)}
