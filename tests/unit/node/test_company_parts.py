"""From the company document to what models and tool servers are built from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from crewlet.base.errors import ConfigError
from crewlet.node.company_parts import provider_configs, seat_server_specs, shared_server_specs, turn_config
from tests.unit.node.companies import acme, seat_of, source

SHARED = {
    "name": "board",
    "command": "${CREWLET_PYTHON}",
    "args": ["board.py", "--depth", "${DEPTH}"],
    "env": {"BOARD_KEY": "${BOARD_KEY}", "LEVEL": "${DEPTH}", "PYTHON": "${CREWLET_PYTHON}"},
    "tool_prefix": "b_",
    "tool_annotations": {"read": {"read_only": True}},
    "startup_timeout_seconds": 5,
    "request_timeout_seconds": 6,
}
OWN = {"name": "mail", "command": "mail", "shared": False, "env": {"HOST": "mail.acme"}}
ENVIRONMENT = {"BOARD_KEY": "a-board-secret", "DEPTH": "3", "CEO_MAIL": "the-ceos-password", "URL_KEY": "key-in-a-url"}


def roles(**mcp_env: Mapping[str, str]) -> list[object]:
    return [{"name": "Chief", "handle": "ceo", "mcp_env": mcp_env}, {"name": "Other", "handle": "other"}]


def test_how_far_a_turn_goes_is_the_companys_word() -> None:
    bounds = {"max_iterations": 2, "max_tool_rounds": 7, "delegation_depth_limit": 4}
    config = turn_config(acme(turn_engine=bounds))

    assert (config.max_iterations, config.max_tool_rounds, config.delegation_depth_limit) == (2, 7, 4)


@pytest.mark.parametrize(
    ("written", "rounds"),
    [
        ({}, (10, 20)),
        ({"onboarding_max_tool_rounds": 0}, (0, 20)),
        ({"onboarding_max_tool_rounds": 3, "onboarding_max_tool_rounds_ceiling": 5}, (3, 5)),
    ],
)
def test_how_long_a_seat_may_look_around_is_the_companys_word(written: dict[str, int], rounds: tuple[int, int]) -> None:
    config = turn_config(acme(turn_engine=written))

    assert (config.onboarding_max_tool_rounds, config.onboarding_max_tool_rounds_ceiling) == rounds


def test_a_model_keeps_its_key_references_until_a_call_needs_them() -> None:
    llm = {
        "claude": {
            "type": "anthropic",
            "model": "some-model",
            "api_keys": ["${CLAUDE_KEY}"],
            "optional": True,
            "timeout_seconds": 9,
            "cooldowns": {"rate_limit_seconds": 100, "auth_seconds": 200},
        }
    }
    (config,) = provider_configs(source(acme(providers={"llm": llm}), {"CLAUDE_KEY": "sk-1"}), frozenset())

    assert (config.key, config.type, config.model, config.timeout_s) == (
        "claude",
        "anthropic",
        "some-model",
        9,
    )
    assert config.api_keys == ("${CLAUDE_KEY}",)
    assert (config.cooldowns.rate_limit_seconds, config.cooldowns.auth_seconds) == (100, 200)


def test_a_base_url_is_resolved_and_a_script_counts_from_the_documents_folder() -> None:
    llm = {
        "local": {"type": "openai-compatible", "model": "m", "base_url": "${BASE}/v1"},
        "offline": {"type": "scripted", "script": "replies/script.yaml"},
    }
    local, offline = provider_configs(source(acme(providers={"llm": llm}), {"BASE": "http://127.0.0.1:1"}), frozenset())

    assert (local.base_url, local.script) == ("http://127.0.0.1:1/v1", None)
    assert offline.script == Path("/company/replies/script.yaml")


def test_a_shared_server_is_resolved_and_runs_in_the_documents_folder() -> None:
    (spec,) = shared_server_specs(source(acme(mcp_servers=[SHARED, OWN]), ENVIRONMENT))

    assert (spec.name, spec.shared, spec.cwd, spec.tool_prefix) == ("board", True, "/company", "b_")
    assert spec.args == ("board.py", "--depth", "3")
    assert (spec.env["BOARD_KEY"], spec.env["LEVEL"]) == ("a-board-secret", "3")
    assert (spec.startup_timeout_s, spec.request_timeout_s) == (5, 6)
    assert spec.tool_annotations["read"].read_only is True


def test_the_values_of_variables_are_secrets_but_short_ones_and_the_interpreter() -> None:
    """Blanking those out would spoil ordinary texts."""
    (spec,) = shared_server_specs(source(acme(mcp_servers=[SHARED]), ENVIRONMENT))

    assert spec.secrets == {"a-board-secret"}


def test_a_key_in_an_address_or_a_header_is_a_secret() -> None:
    server = {
        "name": "web",
        "transport": "http",
        "url": "https://tools.example/${URL_KEY}",
        "headers": {"Authorization": "Bearer ${BOARD_KEY}"},
    }
    (spec,) = shared_server_specs(source(acme(mcp_servers=[server]), ENVIRONMENT))

    assert (spec.url, spec.headers["Authorization"]) == ("https://tools.example/key-in-a-url", "Bearer a-board-secret")
    assert spec.secrets == {"key-in-a-url", "a-board-secret"}
    assert "key-in-a-url" not in repr(spec)


def test_a_seat_has_children_of_its_own_of_the_servers_that_it_names() -> None:
    company = acme(mcp_servers=[SHARED, OWN], roles=roles(mail={"PASSWORD": "${CEO_MAIL}"}))
    origin = source(company, ENVIRONMENT)

    (mail,) = seat_server_specs(origin, seat_of(company, "ceo"))

    assert (mail.name, mail.shared) == ("mail", False)
    assert dict(mail.env) == {"HOST": "mail.acme", "PASSWORD": "the-ceos-password"}
    assert mail.secrets == {"the-ceos-password"}
    assert seat_server_specs(origin, seat_of(company, "other")) == []


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(ConfigError, match="BOARD_KEY"):
        shared_server_specs(source(acme(mcp_servers=[SHARED]), {"DEPTH": "3"}))
