"""What a well-formed document may still not say."""

from __future__ import annotations

import pytest

from crewlet.base.errors import Problem
from crewlet.org import CompanyDocument, company_problems

_SECRET = "sk-live-0123456789"
_PERSON = {"name": "Ann", "kind": "human", "contact": {"github_login": "ann"}}
_STDIO = {"name": "s", "command": "c"}
_PER_SEAT = {**_STDIO, "shared": False}


def _problems(**fields: object) -> tuple[Problem, ...]:
    return company_problems(CompanyDocument.model_validate({"name": "Acme", **fields}))


def _paths(**fields: object) -> list[str]:
    return [problem.path for problem in _problems(**fields)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("llm", "m"),
        ("llm_judge", "m"),
        ("llm_review", "m"),
        ("llm_subagent", "m"),
        ("workers", ["w"]),
        ("mcp_env", {"s": {"X": "1"}}),
        ("behavioral_guidelines", ["Be kind"]),
        ("token_budget", {"day": 5}),
    ],
)
def test_a_human_has_nothing_that_only_a_run_needs(field: str, value: object) -> None:
    models = {"llm": {"m": {"type": "openai", "model": "x"}}}
    workers = {"w": {"description": "d", "system_prompt": "s"}}

    paths = _paths(roles=[{**_PERSON, field: value}], providers=models, mcp_servers=[_PER_SEAT], workers=workers)

    assert paths == [f"roles[0].{field}"]


@pytest.mark.parametrize("field", ["contact", "availability"])
def test_an_agent_has_no_contact_and_no_office_hours(field: str) -> None:
    value = {"github_login": "bot"} if field == "contact" else "always"

    assert _paths(roles=[{"name": "a", field: value}]) == [f"roles[0].{field}"]


def test_a_human_needs_a_contact() -> None:
    assert _paths(roles=[{"name": "Ann", "kind": "human"}]) == ["roles[0].contact"]


def test_a_contact_is_one_person_whatever_its_case_and_spaces() -> None:
    twin = {"name": "Bob", "kind": "human", "contact": {"github_login": " A nn"}}

    assert _paths(roles=[_PERSON, twin]) == ["roles[1].contact.github_login"]


def test_the_same_word_on_two_surfaces_is_two_identities() -> None:
    other = {"name": "Bob", "kind": "human", "contact": {"gitlab_username": "ann"}}

    assert _paths(roles=[_PERSON, other]) == []


@pytest.mark.parametrize("value", ["anonymous", "Anonymous ", "u-${ID}", "${ID}${ID}", "${no good}"])
def test_a_contact_is_a_literal_or_one_whole_reference_and_never_anonymous(value: str) -> None:
    person = {"name": "Ann", "kind": "human", "contact": {"crewlet_operator_id": value}}

    assert _paths(roles=[person]) == ["roles[0].contact.crewlet_operator_id"]


def test_a_contact_may_be_a_reference() -> None:
    assert _paths(roles=[{"name": "Ann", "kind": "human", "contact": {"slack_user_id": "${ANN}"}}]) == []


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        (
            {"providers": {"llm": {"m": {"type": "openai", "model": "x", "api_keys": [_SECRET]}}}},
            "providers.llm.m.api_keys[0]",
        ),
        (
            {"providers": {"llm": {"m": {"type": "openai", "model": "x", "api_keys": ["sk-${A}"]}}}},
            "providers.llm.m.api_keys[0]",
        ),
        (
            {
                "providers": {
                    "llm": {"m": {"type": "openai-compatible", "model": "x", "base_url": f"http://u:{_SECRET}@h/v1"}}
                }
            },
            "providers.llm.m.base_url",
        ),
        ({"mcp_servers": [{**_STDIO, "env": {"GITHUB_TOKEN": _SECRET}}]}, "mcp_servers[0].env.GITHUB_TOKEN"),
        (
            {
                "mcp_servers": [
                    {
                        "name": "s",
                        "transport": "http",
                        "url": "http://h",
                        "headers": {"authorization": f"Bearer {_SECRET}"},
                    }
                ]
            },
            "mcp_servers[0].headers.authorization",
        ),
        (
            {"mcp_servers": [_PER_SEAT], "roles": [{"name": "a", "mcp_env": {"s": {"DB_PASSWORD": _SECRET}}}]},
            "roles[0].mcp_env.s.DB_PASSWORD",
        ),
        (
            {"mcp_servers": [_PER_SEAT], "units": [{"name": "u", "mcp_env": {"s": {"API_KEY": _SECRET}}}]},
            "units[0].mcp_env.s.API_KEY",
        ),
    ],
)
def test_a_credential_in_clear_is_refused_and_not_repeated(fields: dict[str, object], path: str) -> None:
    (problem,) = _problems(**fields)

    assert problem.path == path
    assert "${VAR}" in problem.remedy
    assert _SECRET not in str(problem)


def test_a_credential_by_reference_is_taken() -> None:
    headers = {"Authorization": "Bearer ${CRM_TOKEN}", "X-Region": "eu"}

    assert _paths(mcp_servers=[{"name": "s", "transport": "http", "url": "http://h", "headers": headers}]) == []


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({"type": "openai"}, ".model"),
        ({"type": "openai-compatible", "model": "x"}, ".base_url"),
        ({"type": "openai-compatible", "model": "x", "base_url": "127.0.0.1"}, ".base_url"),
        ({"type": "scripted"}, ".script"),
        ({"type": "openai", "model": "x", "script": "s.yaml"}, ".script"),
        ({"type": "scripted", "script": "s.yaml", "api_keys": ["${A}"]}, ""),
    ],
)
def test_a_model_entry_is_complete_for_its_type(entry: dict[str, object], path: str) -> None:
    assert _paths(providers={"llm": {"m": entry}}) == [f"providers.llm.m{path}"]


def test_a_model_that_no_entry_configures_is_refused_with_the_likely_one() -> None:
    models = {"llm": {"claude": {"type": "anthropic", "model": "x"}}}
    role = {"name": "a", "llm": {"default": "claud", "review": "gpt"}, "llm_review": "claud"}

    found = {problem.path: problem.remedy for problem in _problems(roles=[role], providers=models)}

    assert found == {
        "roles[0].llm": "did you mean 'claude'?",
        "roles[0].llm.review": "configured: claude",
        "roles[0].llm_review": "did you mean 'claude'?",
    }


@pytest.mark.parametrize(
    ("server", "path"),
    [
        ({"name": "s"}, "command"),
        ({"name": "s", "transport": "http"}, "url"),
        ({**_STDIO, "url": "http://h"}, "url"),
        ({"name": "s", "transport": "http", "url": "http://h", "args": ["x"]}, "args"),
        ({"name": "crewlet", "command": "c"}, "name"),
    ],
)
def test_a_tool_server_is_complete_for_its_transport(server: dict[str, object], path: str) -> None:
    assert _paths(mcp_servers=[server]) == [f"mcp_servers[0].{path}"]


def test_tool_servers_have_names_of_their_own() -> None:
    assert _paths(mcp_servers=[_STDIO, _STDIO]) == ["mcp_servers[1].name"]


def test_variables_for_a_server_that_takes_none_are_refused() -> None:
    role = {"name": "a", "mcp_env": {"s": {"X": "1"}, "other": {"X": "1"}}}

    assert _paths(mcp_servers=[_STDIO], roles=[role]) == ["roles[0].mcp_env.s", "roles[0].mcp_env.other"]


@pytest.mark.parametrize("key", ["read_only", "readOnly", "readOnlyHint", "read_only_hint"])
def test_a_tool_hint_may_be_spelt_either_way(key: str) -> None:
    server = {**_STDIO, "tool_annotations": {"look": {key: True}}}

    document = CompanyDocument.model_validate({"name": "Acme", "mcp_servers": [server]})

    assert document.mcp_servers[0].tool_annotations["look"].read_only is True


_WORKER = {"description": "Reads.", "system_prompt": "You read."}


@pytest.mark.parametrize(
    ("worker", "path", "said"),
    [
        ({"model": "claud"}, "workers.w.model", "no model 'claud'"),
        ({"max_turns": 41}, "workers.w.max_turns", "is above max_turns_ceiling, which is 40"),
        ({"output": {"type": "string"}}, "workers.w.output", "must be an object with `properties`"),
        ({"output": {"properties": {}}}, "workers.w.output", "1 to 12 properties"),
        (
            {"output": {"properties": {f"p{n}": {"type": "string"} for n in range(13)}}},
            "workers.w.output",
            "1 to 12 properties",
        ),
        ({"output": {"properties": {"a": {"type": "date"}}}}, "workers.w.output", "`a.type` must be one of"),
        ({"output": {"properties": {"a": {"type": "string"}}, "required": ["b"]}}, "workers.w.output", "names 'b'"),
        (
            {"output": {"properties": {"a": {"type": "array", "items": {"type": "array", "items": {
                "type": "array", "items": {"type": "string"}}}}}}},
            "workers.w.output",
            "too deep",
        ),
    ],
)  # fmt: skip
def test_a_worker_is_bounded_and_knows_its_model(worker: dict[str, object], path: str, said: str) -> None:
    (problem,) = _problems(workers={"w": {**_WORKER, **worker}})

    assert problem.path == path
    assert said in problem.problem


def test_a_seat_names_workers_that_there_are() -> None:
    (problem,) = _problems(workers={"reader": _WORKER}, roles=[{"name": "a", "workers": ["reeder"]}])

    assert (problem.path, problem.remedy) == ("roles[0].workers[0]", "did you mean 'reader'?")


def test_the_usual_rounds_of_a_worker_are_within_the_ceiling() -> None:
    engine = {"delegation": {"max_turns": 9, "max_turns_ceiling": 8}}

    assert _paths(turn_engine=engine) == ["turn_engine.delegation.max_turns"]
