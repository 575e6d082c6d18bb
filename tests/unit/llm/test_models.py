"""The models of a company, out of its entries and this machine's variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from crewlet.base.clock import SystemClock
from crewlet.base.errors import ConfigError, Problem
from crewlet.base.fence import Resolve
from crewlet.llm import Models, ProviderConfig, build_models

CLAUDE = ProviderConfig(key="claude", type="anthropic", model="some-model")
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


def test_an_entry_without_keys_takes_the_variable_of_its_type() -> None:
    assert built(CLAUDE, ANTHROPIC_API_KEY="k").keys == ("claude",)


def test_a_compatible_endpoint_needs_no_key() -> None:
    assert built(LOCAL).keys == ("local",)


def test_every_missing_key_is_named_with_its_field_and_its_variable() -> None:
    with pytest.raises(ConfigError) as caught:
        built(CLAUDE, GPT, KEY_A="k")

    assert [(each.path, each.problem) for each in caught.value.problems] == [
        ("providers.llm.claude.api_keys", "${ANTHROPIC_API_KEY} is not set"),
        ("providers.llm.gpt.api_keys", "${KEY_B} is not set"),
    ]


def test_an_empty_variable_counts_as_unset() -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        built(CLAUDE, ANTHROPIC_API_KEY=" ")


def test_an_optional_entry_without_its_key_is_left_out(offline: ProviderConfig) -> None:
    optional = ProviderConfig(key="claude", type="anthropic", model="some-model", optional=True)

    models = built(optional, offline)

    assert (models.keys, models.skipped) == (("offline",), {"claude"})
    assert models.for_chain(("claude", "offline")).keys == ("offline",)
    assert not models.are_real


def test_a_script_never_stands_in_for_a_real_model_that_can_be_used(offline: ProviderConfig) -> None:
    models = built(CLAUDE, offline, ANTHROPIC_API_KEY="k")

    assert models.for_chain(("claude", "offline")).keys == ("claude",)
    assert models.for_chain(("offline",)).keys == ("offline",)


def test_a_chain_keeps_the_order_it_was_named_in() -> None:
    models = built(CLAUDE, LOCAL, ANTHROPIC_API_KEY="k")

    assert models.for_chain(("local", "claude", "local")).keys == ("local", "claude")


def test_an_unknown_entry_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"providers\.llm\.fast: no such entry"):
        built(LOCAL).for_chain(("fast",))


def test_a_chain_of_which_nothing_is_left_is_refused() -> None:
    optional = ProviderConfig(key="claude", type="anthropic", model="some-model", optional=True)

    with pytest.raises(ConfigError, match="no model can be used"):
        built(optional).for_chain(("claude",))


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (ProviderConfig(key="a", type="scripted"), "script"),
        (ProviderConfig(key="a", type="openai-compatible", model="m"), "base_url"),
        (ProviderConfig(key="a", type="openai-compatible", base_url="http://127.0.0.1:1"), "model"),
    ],
)
def test_a_missing_field_is_named(config: ProviderConfig, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        built(config)

    assert [each.path for each in caught.value.problems] == [f"providers.llm.a.{field}"]
