"""The providers that the company document configures: models now, embeddings and sandboxes later."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from crewlet.base import limits
from crewlet.org.document_part import DocumentPart, Later, Texts

__all__ = ["CooldownsDocument", "ModelEntryDocument", "ModelType", "ProvidersDocument", "ReasoningEffort"]

ModelType = Literal["openai", "anthropic", "openai-compatible", "scripted"]
ReasoningEffort = Literal["low", "medium", "high", "max"]

_Cooldown = Annotated[int, Field(ge=limits.COOLDOWN_MIN_S)]


class CooldownsDocument(DocumentPart):
    """How long a key rests after the vendor turned it away."""

    rate_limit_seconds: _Cooldown = 3600
    """After 429 and 402."""
    auth_seconds: _Cooldown = 300
    """After 401 and 403; doubles on repeats."""


class ModelEntryDocument(DocumentPart):
    """One model that seats may name."""

    type: ModelType
    """``scripted`` is no real model: its replies come from a file, for examples and tests."""
    model: str = ""
    """The vendor's name of the model; required unless scripted."""
    api_keys: Texts = ()
    """Whole ``${VAR}`` references, used in rotation. Empty means ${ANTHROPIC_API_KEY} or ${OPENAI_API_KEY} by type."""
    optional: bool = False
    """Where one of its key variables is unset, leave this entry out instead of refusing to start."""
    cooldowns: CooldownsDocument = CooldownsDocument()
    base_url: str = ""
    """Required for ``openai-compatible``."""
    timeout_seconds: Annotated[float, Field(gt=0)] = limits.LLM_TIMEOUT_S
    reasoning: bool = False
    reasoning_effort: ReasoningEffort = "medium"
    reasoning_budget_tokens: Annotated[int, Field(gt=0)] = 10_000
    script: str = ""
    """Scripted only: the file of replies, relative to the company document."""
    cli: Annotated[object, Later()] = None


class ProvidersDocument(DocumentPart):
    """Everything that is bought from outside."""

    llm: dict[str, ModelEntryDocument] = Field(default_factory=dict[str, ModelEntryDocument])
    """The models, by a key of your choice; the order is the order of preference."""
    embeddings: Annotated[object, Later()] = None
    sandbox: Annotated[object, Later()] = None
