"""Late ``${VAR}``."""

from __future__ import annotations

import sys

import pytest

from crewlet.base.errors import ConfigError
from crewlet.config import PYTHON_VARIABLE, Variables, company_of, references, source_of


def test_references_are_replaced_and_all_else_is_kept() -> None:
    resolve = Variables({"A": "1", "B": "${A}"})

    assert resolve("x ${A}-${B} $A {A} ${a-b} $${A}") == "x 1-${A} $A {A} ${a-b} $1"


def test_every_unset_variable_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        Variables({"A": "1"})("${A}${B}${C}${B}")

    assert [problem.problem for problem in caught.value.problems] == [
        "the variable B is not set",
        "the variable C is not set",
    ]


def test_no_value_shows_in_the_repr() -> None:
    assert "hunter2" not in repr(Variables({"A": "hunter2"}))


def test_the_engines_interpreter_is_always_there() -> None:
    assert Variables({})(f"${{{PYTHON_VARIABLE}}}") == sys.executable


def test_an_empty_variable_is_known() -> None:
    variables = Variables({"A": ""})

    assert variables("${A}") == ""
    assert variables.is_known("A")


def test_a_document_tells_its_references_with_their_paths() -> None:
    text = """
name: A
providers: {llm: {m: {type: openai, model: x, api_keys: ["${ONE}", "${TWO}"]}}}
mcp_servers: [{name: s, command: "${BIN}/run", headers: {}}]
roles: [{name: a, goal: "say ${ONE} twice ${ONE}"}]
"""

    found = references(company_of(source_of(text)).document)

    assert set(found) == {
        ("providers.llm.m.api_keys[0]", "ONE"),
        ("providers.llm.m.api_keys[1]", "TWO"),
        ("mcp_servers[0].command", "BIN"),
        ("roles[0].goal", "ONE"),
    }
    assert len(found) == 4
