"""What replies cost, where that is known."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic_ai.usage import RequestUsage

from crewlet.llm.prices import PriceList
from crewlet.llm.provider_config import ProviderConfig, ProviderType

AT = datetime(2026, 3, 1, tzinfo=UTC)
USAGE = RequestUsage(input_tokens=1000, output_tokens=100, cache_read_tokens=500)


def prices(kind: ProviderType, model: str, base_url: str = "") -> PriceList:
    return PriceList(ProviderConfig(key="main", type=kind, model=model, api_keys=("${K}",), base_url=base_url))


def cost(kind: ProviderType, model: str, base_url: str = "", usage: RequestUsage = USAGE) -> float | None:
    return prices(kind, model, base_url).cost_usd(model, usage, AT)


@pytest.mark.parametrize(
    ("kind", "model", "base_url"),
    [
        ("anthropic", "claude-sonnet-4-5", ""),
        ("anthropic", "claude-sonnet-4-5-20250929", ""),
        ("anthropic", "claude-sonnet-4-5", "https://api.anthropic.com"),
    ],
)
def test_cached_tokens_are_priced_apart_and_none_is_paid_twice(kind: ProviderType, model: str, base_url: str) -> None:
    # Per million: 3 dollars read, 0.30 read from the cache, 15 written.
    assert cost(kind, model, base_url) == pytest.approx((500 * 3 + 500 * 0.3 + 100 * 15) / 1_000_000)


def test_a_vendor_is_known_by_its_address() -> None:
    assert cost("openai-compatible", "deepseek-chat", "https://api.deepseek.com/v1") is not None


@pytest.mark.parametrize(
    ("kind", "model", "base_url"),
    [
        ("anthropic", "claude-of-next-year", ""),
        ("openai", "my-own-model", ""),
        ("openai-compatible", "claude-sonnet-4-5", "http://127.0.0.1:11434/v1"),
        ("openai", "gpt-5-mini", "https://gateway.example/v1"),
    ],
)
def test_what_is_not_on_the_list_has_no_known_cost_rather_than_none(
    kind: ProviderType, model: str, base_url: str
) -> None:
    assert cost(kind, model, base_url) is None


def test_a_reply_whose_length_nobody_said_has_no_known_cost() -> None:
    assert cost("anthropic", "claude-sonnet-4-5", usage=RequestUsage()) is None


def test_a_reply_that_read_less_than_it_found_in_the_cache_has_no_known_cost() -> None:
    assert cost("anthropic", "claude-sonnet-4-5", usage=RequestUsage(input_tokens=1, cache_read_tokens=5)) is None
