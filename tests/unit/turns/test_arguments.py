"""Arguments against a schema: each refusal names the field and the remedy, and what is not understood passes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from crewlet.turns.arguments import argument_problems

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "mode": {"enum": ["fast", "slow"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "maybe": {"type": ["string", "null"]},
        "odd": {"type": "decimal"},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "a"},
        {"name": "a", "count": 3, "share": 1, "tags": ["x"], "place": {"x": 1}},
        {"name": "a", "count": 3.0},
        {"name": "a", "either": 3, "maybe": None, "odd": object()},
        {"name": "a", "place": {"x": 1, "more": "fields"}},
    ],
)
def test_what_fits_or_is_not_understood_passes(arguments: Mapping[str, object]) -> None:
    assert argument_problems(SCHEMA, arguments) == ()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "`name` is missing: give a string"),
        ({"name": 1}, "`name` is a value of type integer: give a string"),
        ({"name": "a", "count": True}, "`count` is a value of type boolean: give an integer"),
        ({"name": "a", "count": 1.5}, "`count` is a value of type number: give an integer"),
        ({"name": "a", "mode": "slowly"}, "`mode` is 'slowly': give one of fast, slow"),
        ({"name": "a", "tags": "x"}, "`tags` is a value of type string: give an array"),
        ({"name": "a", "tags": ["x", 2]}, "`tags[1]` is a value of type integer: give a string"),
        ({"name": "a", "place": {}}, "`place.x` is missing: give an integer"),
        ({"name": "a", "maybe": 1}, "`maybe` is a value of type integer: give a string or a null"),
        ({"name": "a", "nam": "b"}, "`nam` is not known here: leave it out"),
    ],
)
def test_what_does_not_fit_is_named_with_the_remedy(arguments: Mapping[str, object], told: str) -> None:
    problems = argument_problems(SCHEMA, arguments)

    assert len(problems) == 1
    assert told in problems[0]


def test_every_problem_is_told_at_once() -> None:
    assert len(argument_problems(SCHEMA, {"count": "x", "mode": 3})) == 3


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": "nonsense", "required": "name"}])
def test_a_schema_without_rules_lets_everything_through(schema: Mapping[str, object]) -> None:
    assert argument_problems(schema, {"anything": 1}) == ()
