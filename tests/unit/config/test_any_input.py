"""Whatever a file says, the answer is a configuration or a ``ConfigError``; no other exception reaches a person."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from crewlet.base.errors import ConfigError
from crewlet.config import Source, company_of, company_schema, node_of, node_schema, source_of

_SAMPLE = """name: A
roles:
  - name: Ann
    kind: human
    contact: {github_login: ann}
  - {name: ceo, llm: [m], manages: ["u"]}
units: [{name: u, lead: ceo, roles: [{name: dev}]}]
providers:
  llm: {m: {type: openai, model: x, api_keys: ["${A}"]}}
"""


def _names(schema: Mapping[str, object]) -> set[str]:
    parts = [schema, *cast("dict[str, Mapping[str, object]]", schema["$defs"]).values()]
    return {name for part in parts for name in cast("Mapping[str, object]", part.get("properties", {}))}


_KEYS = st.sampled_from(sorted(_names(company_schema()) | _names(node_schema()) | {"", "a.b", "m", "[0]"}))
_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["agent", "human", "openai", "scripted", "embedded", "nats", "${A}", "${", "always", "ceo"])
)  # fmt: skip
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=25
)
_DOCUMENTS = st.dictionaries(_KEYS, _VALUES, max_size=6)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(_DOCUMENTS)
def test_any_mapping_is_a_configuration_or_a_config_error(document: dict[str, object]) -> None:
    source = Source("no/such/file.yaml", document, {})

    with contextlib.suppress(ConfigError):
        assert isinstance(company_of(source).document, BaseModel)
    with contextlib.suppress(ConfigError):
        assert node_of(source, {"A": "1"}).config.data_dir.is_absolute()


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(_SAMPLE)), st.integers(0, 6), st.text(max_size=6))
def test_any_damage_to_a_file_is_a_company_or_a_config_error(at: int, cut: int, put: str) -> None:
    damaged = _SAMPLE[:at] + put + _SAMPLE[at + cut :]

    with contextlib.suppress(ConfigError):
        assert company_of(source_of(damaged)).organization.name


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"%@#?, \n\t<~0.", max_size=40))
def test_any_text_is_a_mapping_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert isinstance(source_of(text).values, dict)
