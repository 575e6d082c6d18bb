"""The models of a company, out of its entries and this machine's variables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crewlet.base.clock import SystemClock
from crewlet.base.errors import ConfigError, Problem
from crewlet.base.fence import Resolve
from crewlet.llm import Models, ProviderConfig, build_models

CLAUDE = ProviderConfig(key="claude", type="anthropic", model="some-model", api_keys=("${ANTHROPIC_API_KEY}",))
GPT = ProviderConfig(key="gpt", type="openai", model="some-model", api_keys=("${KEY_A}", "${KEY_B}"))
LOCAL = ProviderConfig(key="local", type="openai-compatible", model="some-model", base_url="http://127.0.0.1:1/v1")


@pytest.fixture
def offline(tmp_path: Path) -> ProviderConfig:
    script = tmp_path / "offline.yaml"
    script.write_text("replies: [{say: hi}]", encoding="utf-8")
    return ProviderConfig(key="offline", type="scripted", script=script)


def variables(**known: str) -> Resolve:
    def resolve(text: str) -> str:
        name = text.removeprefix("${").removesuffix("}")
        if name not in known:
            raise ConfigError(Problem("", f"${{{name}}} is not set"))
        return known[name]

    return resolve


def built(*configs: ProviderConfig, **known: str) -> Models:
    return build_models(configs, resolve=variables(**known), clock=SystemClock())


def test_a_compatible_endpoint_needs_no_key() -> None:
    assert built(LOCAL).keys == ("local",)


def test_every_missing_key_is_named_with_its_field_and_its_variable() -> None:
    with pytest.raises(ConfigError) as caught:
        built(CLAUDE, GPT, KEY_A="k")

    assert [(each.path, each.problem) for each in caught.value.problems] == [
        ("providers.llm.claude.api_keys", "there is no key behind ${ANTHROPIC_API_KEY}"),
        ("providers.llm.gpt.api_keys", "there is no key behind ${KEY_B}"),
    ]


def test_an_empty_variable_counts_as_unset() -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        built(CLAUDE, ANTHROPIC_API_KEY=" ")


def test_a_company_is_real_as_soon_as_one_of_its_models_is(offline: ProviderConfig) -> None:
    assert not built(offline).are_real
    assert built(offline, CLAUDE, ANTHROPIC_API_KEY="k").are_real


def test_a_chain_keeps_the_order_it_was_named_in() -> None:
    models = built(CLAUDE, LOCAL, ANTHROPIC_API_KEY="k")

    assert models.for_chain(("local", "claude", "local")).keys == ("local", "claude")


def test_an_unknown_entry_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"providers\.llm\.fast: no such entry"):
        built(LOCAL).for_chain(("fast",))


def test_an_empty_chain_is_refused() -> None:
    with pytest.raises(ConfigError, match="no model can be used"):
        built(LOCAL).for_chain(())


@pytest.mark.parametrize(
    "written",
    [
        {"type": "scripted"},
        {"type": "openai-compatible", "base_url": "http://127.0.0.1:1"},
        {"type": "anthropic", "model": "m"},
        {"type": "openai", "model": "m"},
    ],
)
def test_an_incomplete_entry_cannot_be_made(written: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="incomplete"):
        ProviderConfig(key="a", **written)


def test_an_address_that_came_to_nothing_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        built(replace(LOCAL, base_url=""))

    assert [each.path for each in caught.value.problems] == ["providers.llm.local.base_url"]
