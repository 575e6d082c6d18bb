"""One entry of ``providers.llm`` as this room takes it; ``node`` maps the company document to it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crewlet.base import limits

__all__ = ["Cooldowns", "ProviderConfig", "ProviderType", "ReasoningEffort"]

ProviderType = Literal["anthropic", "openai", "openai-compatible", "scripted"]
ReasoningEffort = Literal["low", "medium", "high", "max"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooldowns:
    """How long a key rests after the vendor turned it away, where the vendor does not say it itself."""

    rate_limit_seconds: int = 3600
    auth_seconds: int = 300

    def __post_init__(self) -> None:
        floor = min(self.rate_limit_seconds, self.auth_seconds)
        if floor < limits.COOLDOWN_MIN_S:
            raise ValueError(f"a cooldown of {floor} s is below the floor of {limits.COOLDOWN_MIN_S} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderConfig:
    """One model that seats may name. ``api_keys`` keep their ``${VAR}`` references; the rest is resolved already.

    Only an ``openai-compatible`` endpoint may be called without a key. The company document's rules name what is
    missing to whoever wrote it; here it is a ``ValueError``.
    """

    key: str
    type: ProviderType
    model: str = ""
    api_keys: tuple[str, ...] = ()
    base_url: str = ""
    timeout_s: float = limits.LLM_TIMEOUT_S
    cooldowns: Cooldowns = Cooldowns()
    reasoning: bool = False
    reasoning_effort: ReasoningEffort = "medium"
    reasoning_budget_tokens: int = 10_000
    script: Path | None = None

    def __post_init__(self) -> None:
        if self.type == "scripted":
            is_complete = self.script is not None
        else:
            is_complete = bool(self.model) and bool(self.api_keys or self.type == "openai-compatible")
        if not is_complete:
            raise ValueError(f"providers.llm.{self.key} is incomplete for type {self.type}")
