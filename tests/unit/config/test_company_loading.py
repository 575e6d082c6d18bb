"""The company document: what is refused, where, and with which remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlet.base.errors import ConfigError, Problem
from crewlet.config import company_of, load_company, source_of
from crewlet.org import NotificationLimits, TokenBudget


def _problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        company_of(source_of(text, "company.yaml"))
    return caught.value.problems


def _problem(text: str) -> Problem:
    (problem,) = _problems(text)
    return problem


@pytest.mark.parametrize(
    ("text", "path", "line", "remedy"),
    [
        ("name: A\nrolse: []", "rolse", 2, "did you mean `roles`?"),
        ("name: A\nroles:\n  - name: a\n    handel: b", "roles[0].handel", 4, "did you mean `handle`?"),
        ("name: A\nroles:\n  - name: a\n    llm: {reveiw: m}", "roles[0].llm.reveiw", 4, "did you mean `review`?"),
        (
            "name: A\nunits:\n  - name: u\n    children:\n      - name: v\n        leed: x",
            "units[0].children[0].leed",
            6,
            "did you mean `lead`?",
        ),
        (
            "name: A\nproviders:\n  llm:\n    m:\n      type: openai\n      modle: x",
            "providers.llm.m.modle",
            6,
            "did you mean `model`?",
        ),
        (
            "name: A\nroles:\n  - name: a\n    kind: human\n    contact: {github: x}",
            "roles[0].contact.github",
            5,
            "did you mean `github_login`?",
        ),
        (
            "name: A\nmcp_servers:\n  - name: s\n    command: c\n    tool_annotations: {t: {readonli: true}}",
            "mcp_servers[0].tool_annotations.t.readonli",
            5,
            "did you mean `read_only`?",
        ),
        ("name: A\nstream: {type: embedded}", "stream", 2, "this key belongs into the node file (crewlet.yaml)"),
        ("name: A\nturn_engine:\n  zzz: 1", "turn_engine.zzz", 3, None),
    ],
)
def test_an_unknown_key_is_refused_with_its_path_and_the_likely_one(
    text: str, path: str, line: int, remedy: str | None
) -> None:
    problem = _problem(text)

    assert (problem.path, problem.problem, problem.line) == (path, "unknown key", line)
    assert problem.remedy == remedy if remedy else problem.remedy.startswith("known here: max_iterations")


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("learning: {enabled: true}", "learning"),
        ("integrations: {github: {enabled: true}}", "integrations"),
        ("knowledge: {backend: native}", "knowledge"),
        ("tracker: {backend: native}", "tracker"),
        ("scheduling: {enabled: true}", "scheduling"),
        ("skill_variables: {a: b}", "skill_variables"),
        ("turn_engine: {sandbox_min_budget_tokens: 1}", "turn_engine.sandbox_min_budget_tokens"),
        ("turn_engine: {conversation_session: {max_entries: 2}}", "turn_engine.conversation_session"),
        ("providers: {embeddings: {type: openai}}", "providers.embeddings"),
        ("providers: {sandbox: {x: 1}}", "providers.sandbox"),
        ("roles: [{name: a, schedules: [{}]}]", "roles[0].schedules"),
        ("roles: [{name: a, sandbox: {enabled: true}}]", "roles[0].sandbox"),
        ("roles: [{name: a, learning_enabled: false}]", "roles[0].learning_enabled"),
        ("roles: [{name: a, llm_auxiliary: m}]", "roles[0].llm_auxiliary"),
        ("roles: [{name: a, llm: {default: m, auxiliary: m}}]", "roles[0].llm.auxiliary"),
        ("roles: [{name: a, project: ABC}]", "roles[0].project"),
        ("units: [{name: u, space: ABC}]", "units[0].space"),
    ],
)
def test_a_field_of_a_later_subsystem_is_refused_and_never_ignored(line: str, path: str) -> None:
    problem = _problem(f"name: A\n{line}")

    assert (problem.path, problem.problem) == (path, "not supported yet")


@pytest.mark.parametrize(
    ("line", "path", "problem"),
    [
        ("token_budget: {day: 0}", "token_budget.day", "greater than 0"),
        ("token_budget: {week: -5}", "token_budget.week", "greater than 0"),
        ("token_budget: {month: '9'}", "token_budget.month", "must be a whole number"),
        ("token_budget: {month: 9007199254740992}", "token_budget.month", "less than or equal"),
        ("token_budget: {year: 9}", "token_budget.year", "unknown key"),
        ("token_budget: 500000", "token_budget", "must say which window it is for"),
        ("roles: [{name: a, token_budget: {day: 0}}]", "roles[0].token_budget.day", "greater than 0"),
    ],
)
def test_a_ceiling_is_a_positive_number_of_tokens_for_a_window(line: str, path: str, problem: str) -> None:
    found = _problem(f"name: A\n{line}")

    assert found.path == path
    assert problem in found.problem


def test_ceilings_are_taken_for_the_company_and_for_a_seat() -> None:
    text = "name: A\ntoken_budget: {day: 1, week: 2, month: 3}\nroles: [{name: a, token_budget: {week: 4}}, {name: b}]"

    company = company_of(source_of(text)).organization

    assert company.token_budget == TokenBudget(day=1, week=2, month=3)
    assert [seat.token_budget for seat in company.seats] == [TokenBudget(week=4), TokenBudget()]


def test_a_later_field_at_its_default_changes_nothing_and_is_taken() -> None:
    text = "name: A\ntoken_budget:\nlearning: {}\nknowledge: {}\nturn_engine: {sandbox_min_budget_tokens: 2000}"

    assert company_of(source_of(text)).organization.name == "A"


@pytest.mark.spec("E-106", "E-107")
def test_notifications_are_gathered_and_limited_as_written() -> None:
    """Nothing is waited for, twenty are taken at once and none is dropped, unless the document says otherwise."""
    written = {"window_seconds": 60, "max_batch": 100}
    text = "\n".join(f"notification_coalesce_{name}: {value}" for name, value in written.items())

    silent = company_of(source_of("name: A")).organization.notifications
    said = company_of(source_of(f"name: A\n{text}\nnotification_rate_limit: 7")).organization.notifications

    assert silent == NotificationLimits(gather_s=0, gather_max=20, a_second_max=0)
    assert said == NotificationLimits(gather_s=60, gather_max=100, a_second_max=7)


@pytest.mark.spec("E-107")
@pytest.mark.parametrize("events", [0, 101])
def test_a_batch_outside_its_range_is_refused_as_such(events: int) -> None:
    problem = _problem(f"name: A\nnotification_coalesce_max_batch: {events}")

    assert problem.problem == "must be between 1 and 100"


@pytest.mark.spec("E-106")
@pytest.mark.parametrize("seconds", [-1, 61])
def test_a_coalescing_window_outside_its_range_is_refused_as_such(seconds: int) -> None:
    problem = _problem(f"name: A\nnotification_coalesce_window_seconds: {seconds}")

    assert problem.problem == "must be between 0 and 60"


@pytest.mark.parametrize(
    ("line", "path", "says"),
    [
        ("mission: 5", "mission", "text"),
        ("roles: {name: a}", "roles", "list"),
        ("roles: [a]", "roles[0]", "mapping"),
        ("roles: [{name: ' '}]", "roles[0].name", "empty"),
        ("roles: [{goal: x}]", "roles[0].name", "required"),
        ("roles: [{name: a, handle: A_b}]", "roles[0].handle", "handle"),
        ("roles: [{name: a, kind: robot}]", "roles[0].kind", "'agent' or 'human'"),
        ("roles: [{name: a, manages: ceo}]", "roles[0].manages", "list"),
        ("roles: [{name: a, llm: 5}]", "roles[0].llm", "key of providers.llm"),
        ("mcp_servers: [{name: s, command: c, shared: 'yes'}]", "mcp_servers[0].shared", "true or false"),
        ("turn_engine: {max_iterations: 2.5}", "turn_engine.max_iterations", "whole number"),
        ("turn_engine: {max_iterations: 0}", "turn_engine.max_iterations", "1"),
        ("turn_engine: {onboarding_max_tool_rounds: -1}", "turn_engine.onboarding_max_tool_rounds", "0"),
        (
            "providers: {llm: {m: {type: openai, model: x, cooldowns: {auth_seconds: 59}}}}",
            "providers.llm.m.cooldowns.auth_seconds",
            "60",
        ),
    ],
)
def test_a_value_of_the_wrong_kind_says_what_it_must_be(line: str, path: str, says: str) -> None:
    problem = _problem(f"name: A\n{line}")

    assert problem.path == path
    assert says in problem.problem


@pytest.mark.parametrize("zone", ["Local", "localtime", "Europe/Nowhere", "../UTC", "Europe", "' '"])
def test_the_company_clock_is_an_iana_zone(zone: str) -> None:
    assert _problem(f"name: A\ntimezone: {zone}").path == "timezone"


def test_known_zones_are_taken() -> None:
    for zone in ("UTC", "Europe/Paris", "America/Argentina/Ushuaia"):
        assert company_of(source_of(f"name: A\ntimezone: {zone}")).organization.timezone == zone


def test_every_problem_is_told_at_once_in_the_order_of_the_file() -> None:
    problems = _problems("mission: 1\nrolse: []\nroles: [{name: a, kind: x}]")

    assert [problem.path for problem in problems] == ["name", "mission", "rolse", "roles[0].kind"]


def test_a_rule_between_fields_names_file_and_line() -> None:
    with pytest.raises(ConfigError) as caught:
        company_of(source_of("name: A\nroles:\n  - name: ceo\n  - name: Boss\n    handle: ceo", "company.yaml"))

    assert str(caught.value).startswith("company.yaml:5: roles[1].handle: handle 'ceo'")


def test_an_error_never_repeats_a_value_that_may_be_secret() -> None:
    problems = _problems("name: A\nproviders: {llm: {m: {type: openai, api_keys: hunter2, base_url: [hunter2]}}}")

    assert len(problems) == 2
    assert "hunter2" not in str(problems)


def test_a_dangling_reference_is_a_warning_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "company.yaml"
    path.write_text("name: A\nroles:\n  - name: a\n    manages: [b]\n")

    document, organization, warnings, _ = load_company(path)

    assert document.name == organization.name == "A"
    assert [(warning.path, warning.line) for warning in warnings] == [("roles[0].manages[0]", 4)]


def test_a_null_is_an_absent_field() -> None:
    loaded = company_of(source_of("name: A\nmission:\nroles:\nproviders:\n  llm:\n"))

    assert loaded.organization.seats == ()
    assert loaded.organization.mission == ""


def test_a_node_file_in_the_companys_place_is_named_as_one() -> None:
    problem = _problem("data_dir: .\nstream: {type: embedded}\nname: A")

    assert (problem.problem, problem.remedy) == (
        "is a node file, not a company document",
        "give the company document: company.yaml",
    )
