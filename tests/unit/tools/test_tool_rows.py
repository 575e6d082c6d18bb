"""From an advertised tool to a row that a model may be told of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from crewlet.tools import Annotations, Hint, HintOverrides, ToolServerSpec, parse_overrides
from crewlet.tools.tool_rows import model_name, prefixed, qualified, row_of

NO_OVERRIDES: Mapping[str, HintOverrides] = {}


@dataclass
class Hints:
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


@dataclass
class Advertised:
    name: str
    description: str | None = None
    input_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    annotations: Hints | None = None


def spec(prefix: str = "", overrides: Mapping[str, HintOverrides] = NO_OVERRIDES) -> ToolServerSpec:
    return ToolServerSpec(name="github", command="server", tool_prefix=prefix, tool_annotations=overrides)


def test_a_tool_without_hints_is_unclassified() -> None:
    row = row_of(spec(), Advertised("list"), str)

    assert row.annotations == Annotations()
    assert (row.name, row.origin, row.server, row.is_mcp) == ("list", "mcp:github", "github", True)


def test_advertised_hints_are_kept() -> None:
    row = row_of(spec(), Advertised("list", annotations=Hints(read_only_hint=True, open_world_hint=False)), str)

    assert row.annotations == Annotations(read_only=Hint.YES, open_world=Hint.NO)


@pytest.mark.parametrize("written", ["read_only", "readOnly", "read_only_hint", "readOnlyHint"])
@pytest.mark.parametrize("tool", ["list", "gh_list"])
def test_the_documents_hints_override_the_servers_in_any_spelling(written: str, tool: str) -> None:
    overrides = parse_overrides({tool: {written: False}})
    advertised = Advertised("list", annotations=Hints(read_only_hint=True, idempotent_hint=True))

    row = row_of(spec("gh", overrides), advertised, str)

    assert row.annotations == Annotations(read_only=Hint.NO, idempotent=Hint.YES)


@pytest.mark.parametrize(("prefix", "name"), [("", "list"), ("gh", "gh_list"), ("gh_", "gh_list"), ("gh-", "gh-list")])
def test_a_prefix_is_joined_by_one_underscore(prefix: str, name: str) -> None:
    assert prefixed(prefix, "list") == name


@pytest.mark.parametrize("name", ["repos/list.all", "x" * 200, "läuft", "a b"])
def test_every_name_fits_the_grammar_of_model_apis(name: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", model_name(name))
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", qualified("a server", name))


def test_names_that_had_to_be_changed_stay_different() -> None:
    assert len({model_name(name) for name in ("a.b", "a/b", "a_b", "x" * 65, "x" * 66)}) == 5
