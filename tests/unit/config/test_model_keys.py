"""Keys at the start: what an entry without one costs."""

from __future__ import annotations

import pytest

from crewlet.base.errors import ConfigError
from crewlet.config import Variables, company_of, models_without_keys, source_of
from crewlet.org import Organization

_CLAUDE = "claude: {type: anthropic, model: x, api_keys: ['${CLAUDE}'], optional: true}"


def _company(*entries: str, llm: str = "") -> Organization:
    text = f"name: A\nroles: [{{name: a{llm}}}]\nproviders: {{llm: {{{', '.join(entries)}}}}}"
    return company_of(source_of(text)).organization


def test_an_optional_entry_without_its_key_is_left_out() -> None:
    company = _company(_CLAUDE, "s: {type: scripted, script: s.yaml}")

    assert models_without_keys(company, Variables({})) == {"claude"}
    assert models_without_keys(company, Variables({"CLAUDE": "k"})) == frozenset()


@pytest.mark.parametrize("nothing", ["", " \n"])
def test_an_empty_key_is_none(nothing: str) -> None:
    company = _company(_CLAUDE, "s: {type: scripted, script: s.yaml}")

    assert models_without_keys(company, Variables({"CLAUDE": nothing})) == {"claude"}


def test_any_other_entry_without_its_key_refuses_the_start_and_names_the_variable() -> None:
    with pytest.raises(ConfigError) as caught:
        models_without_keys(_company("m: {type: openai, model: x}"), Variables({}))

    assert caught.value.problems[0].path == "providers.llm.m"
    assert "OPENAI_API_KEY is not set" in caught.value.problems[0].problem


def test_a_seat_left_without_any_model_refuses_the_start_and_is_named() -> None:
    company = _company(_CLAUDE, "s: {type: scripted, script: s.yaml}", llm=", llm: claude")

    with pytest.raises(ConfigError, match="seat a"):
        models_without_keys(company, Variables({}))


def test_a_company_without_models_starts() -> None:
    assert models_without_keys(_company(), Variables({})) == frozenset()
