"""The three wire formats, each as pydantic-ai's model for one key, with the settings an entry asks for.

Imports pydantic-ai and the vendors' SDKs: load it late. ``openai`` speaks the Responses API, because OpenAI's models
that reason by default refuse tools on Chat Completions, and because its reasoning can be sent back from call to call;
nothing is stored at the vendor. Everybody else who calls himself compatible speaks Chat Completions.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import httpx2

from crewlet.base import limits
from crewlet.llm.provider_config import ProviderConfig

if TYPE_CHECKING:
    from pydantic_ai.models import Model as VendorModel
    from pydantic_ai.settings import ModelSettings

__all__ = [
    "Wire",
    "binds_reasoning",
    "first_wire",
    "http_client",
    "model_for",
    "settings_for",
    "simpler_wire",
    "strict_tools",
]

_ANTHROPIC_URL: Final = "https://api.anthropic.com"
_OPENAI_URL: Final = "https://api.openai.com/v1"
_NO_KEY: Final = "none"
"""The OpenAI SDK refuses an empty key; an endpoint that asks for none ignores this one."""


class Wire(StrEnum):
    """How an endpoint is spoken to."""

    ANTHROPIC = "anthropic"
    RESPONSES = "openai"
    CHAT = "openai-compatible"


def first_wire(config: ProviderConfig) -> Wire:
    """The wire that an entry of this type starts with."""
    if config.type == "anthropic":
        return Wire.ANTHROPIC
    return Wire.RESPONSES if config.type == "openai" else Wire.CHAT


def simpler_wire(config: ProviderConfig, wire: Wire) -> Wire | None:
    """What to try where an endpoint does not know ``wire``: a gateway of one's own may offer Chat Completions alone."""
    return Wire.CHAT if wire is Wire.RESPONSES and config.base_url else None


def http_client(config: ProviderConfig) -> httpx2.AsyncClient:
    """The connections of one entry. Proxies come from the usual environment variables, as for any HTTP client."""
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(config.timeout_s, connect=min(config.timeout_s, limits.LLM_CONNECT_TIMEOUT_S)),
        limits=httpx2.Limits(
            max_connections=limits.LLM_CONNECTIONS_MAX, max_keepalive_connections=limits.LLM_CONNECTIONS_MAX
        ),
        follow_redirects=True,
    )


def model_for(config: ProviderConfig, wire: Wire, *, secret: str, http: httpx2.AsyncClient) -> VendorModel:
    """pydantic-ai's model for one key. The SDK never retries: a backend says what failed, others decide."""
    if wire is Wire.ANTHROPIC:
        return _anthropic(config, secret, http)
    return _responses(config, secret, http) if wire is Wire.RESPONSES else _chat(config, secret, http)


def _anthropic(config: ProviderConfig, secret: str, http: httpx2.AsyncClient) -> VendorModel:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(api_key=secret, base_url=config.base_url or _ANTHROPIC_URL, http_client=http, max_retries=0)
    return AnthropicModel(config.model, provider=AnthropicProvider(anthropic_client=client))


def _responses(config: ProviderConfig, secret: str, http: httpx2.AsyncClient) -> VendorModel:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(api_key=secret, base_url=config.base_url or _OPENAI_URL, http_client=http, max_retries=0)
    return OpenAIResponsesModel(config.model, provider=OpenAIProvider(openai_client=client))


def _chat(config: ProviderConfig, secret: str, http: httpx2.AsyncClient) -> VendorModel:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(api_key=secret or _NO_KEY, base_url=config.base_url, http_client=http, max_retries=0)
    # Strict tools are OpenAI's own invention: a compatible server may refuse the field, or a schema it finds too free.
    profile = OpenAIModelProfile(openai_supports_strict_tool_definition=False)
    return OpenAIChatModel(config.model, provider=OpenAIProvider(openai_client=client), profile=profile)


def strict_tools(wire: Wire) -> bool | None:
    """Whether tools are declared strict. Never: tool servers' schemas are as free as they please."""
    return None if wire is Wire.CHAT else False


def binds_reasoning(wire: Wire, model: VendorModel) -> bool:
    """Whether the model takes its reasoning back only beside the system prompt and the tools that it was given with.

    Anthropic's models from Fable 5.1 on; the others, and other vendors, do not look.
    """
    return wire is Wire.ANTHROPIC and bool(model.profile.get("anthropic_binds_thinking_blocks", False))


def settings_for(config: ProviderConfig, wire: Wire, model: VendorModel, *, goes_on: bool) -> ModelSettings:
    """The settings of a call of this entry. ``tool_choice`` is always left to the model.

    ``goes_on``: the conversation has replies in it, so it is likely to grow further. pydantic-ai adds no words of its
    own to the system prompt: what the model is told is what the turn recorded.
    """
    if wire is Wire.ANTHROPIC:
        return _anthropic_settings(config, model, goes_on=goes_on)
    return _responses_settings(config) if wire is Wire.RESPONSES else _chat_settings(config)


def _anthropic_settings(config: ProviderConfig, model: VendorModel, *, goes_on: bool) -> ModelSettings:
    from pydantic_ai.models.anthropic import AnthropicModelSettings

    settings = AnthropicModelSettings(
        tool_choice="auto",
        framing_announcement="never",
        timeout=config.timeout_s,
        max_tokens=limits.LLM_MAX_OUTPUT_TOKENS,
        # The system prompt is frozen for a turn and the tools nearly so: both are read from the cache each round.
        anthropic_cache_instructions=True,
        anthropic_cache_tool_definitions=True,
    )
    if goes_on:
        # To write to the cache costs a quarter more, to read from it a tenth: a conversation that goes on would be paid
        # for again with each round, one that is answered at once is never read again.
        settings["anthropic_cache_messages"] = True
    if config.reasoning:
        # Thinking counts against max_tokens, so the answer keeps its room beside it.
        settings["max_tokens"] = limits.LLM_MAX_OUTPUT_TOKENS + config.reasoning_budget_tokens
        if model.profile.get("anthropic_supports_adaptive_thinking", False):
            settings["thinking"] = config.reasoning_effort
        else:
            settings["anthropic_thinking"] = {"type": "enabled", "budget_tokens": config.reasoning_budget_tokens}
    return settings


def _responses_settings(config: ProviderConfig) -> ModelSettings:
    from pydantic_ai.models.openai import OpenAIResponsesModelSettings

    settings = OpenAIResponsesModelSettings(
        tool_choice="auto", framing_announcement="never", timeout=config.timeout_s, openai_store=False
    )
    if config.reasoning:
        settings["thinking"] = config.reasoning_effort
    return settings


def _chat_settings(config: ProviderConfig) -> ModelSettings:
    from pydantic_ai.models.openai import OpenAIChatModelSettings

    settings = OpenAIChatModelSettings(tool_choice="auto", framing_announcement="never", timeout=config.timeout_s)
    if config.reasoning:
        # "max" is not part of this wire; "high" is the most that every server that reads the field knows.
        settings["openai_reasoning_effort"] = "high" if config.reasoning_effort == "max" else config.reasoning_effort
    return settings
