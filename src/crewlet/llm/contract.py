"""What a turn asks of a model and what comes back, in a neutral form that no vendor owns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from crewlet.base.errors import CrewletError

__all__ = [
    "AssistantMessage",
    "ChainExhausted",
    "FailureKind",
    "Fallback",
    "Message",
    "Model",
    "ModelFailure",
    "ModelReply",
    "ModelRequest",
    "OnDelta",
    "OnFallback",
    "StopReason",
    "ToolCall",
    "ToolResultMessage",
    "ToolSpec",
    "Usage",
    "UserMessage",
]


class StopReason(StrEnum):
    """Why a reply ended, over all vendors; a missing or unknown one reads as ``end``."""

    END = "end"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"
    CONTEXT_EXCEEDED = "context_exceeded"
    PAUSED = "paused"


class FailureKind(StrEnum):
    """What kind of failure a provider call ended in; decides whether the chain moves on and which key is benched."""

    RATE_LIMITED = "rate_limited"
    PAYMENT = "payment"
    AUTH = "auth"
    SERVER = "server"
    TIMEOUT = "timeout"
    NETWORK = "network"
    BAD_REQUEST = "bad_request"
    CONTEXT_EXCEEDED = "context_exceeded"
    NO_CREDENTIAL = "no_credential"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it; ``input_schema`` is JSON Schema of an object."""

    name: str
    description: str
    input_schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model asks for. ``arguments`` is ``None`` where ``raw`` is not a JSON object."""

    id: str
    name: str
    arguments: Mapping[str, object] | None
    raw: str = ""


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What the model is told."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """What became of one call of the assistant message before it."""

    call_id: str
    name: str
    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One reply. ``native`` holds the vendor's own blocks, replayed unchanged to the same ``backend`` and ``model``.

    ``bound_to`` is a digest of the system prompt and the tools that it answered, where its model reads its reasoning
    again only beside the same ones; empty where it does not mind.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    native: object | None = None
    backend: str = ""
    model: str = ""
    bound_to: str = ""


Message = UserMessage | AssistantMessage | ToolResultMessage


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply, as the vendor billed them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total(self) -> int:
        """What counts: all that was read and written. Cached tokens are part of ``input_tokens``."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call: the frozen system prompt, the conversation so far, the tools. ``scenario`` is read by scripts alone.

    ``scenario`` says which seat, phase, iteration and round asks, for the scripted model; no vendor sees it.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    scenario: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What one call brought. A refusal is a reply, not an error: it is billed and recorded.

    ``cost_usd`` is ``None`` where the price is not known; a script's has none.
    """

    message: AssistantMessage
    stop_reason: StopReason
    usage: Usage
    model: str
    provider_key: str
    refusal_category: str = ""
    refusal_explanation: str = ""
    cost_usd: float | None = None


class ModelFailure(CrewletError):
    """One provider call failed. ``retry_after_s`` is what the vendor said, where it did."""

    def __init__(
        self, kind: FailureKind, message: str, *, provider_key: str, retry_after_s: float | None = None
    ) -> None:
        self.kind = kind
        self.provider_key = provider_key
        self.retry_after_s = retry_after_s
        super().__init__(message)


class ChainExhausted(CrewletError):
    """Every member of the chain failed; ``last`` is what the last one said."""

    def __init__(self, tried: tuple[str, ...], last: ModelFailure) -> None:
        self.tried = tried
        self.last = last
        several = f" ({', '.join(tried)})" if len(tried) > 1 else ""
        super().__init__(f"no model answered{several}: {last}")


@dataclass(frozen=True, slots=True)
class Fallback:
    """The chain moved on within one call; ``to_provider_key`` is empty after the last member."""

    from_provider_key: str
    to_provider_key: str
    reason: FailureKind
    error: str


OnDelta = Callable[[str], None]
"""Told each piece of visible text as it streams in."""
OnFallback = Callable[[Fallback], None]
"""Told of each hand-over to the next member."""


class Model(Protocol):
    """Whatever answers a request: one entry of ``providers.llm``, or a chain of them."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The provider entries behind it, first choice first."""
        ...

    @property
    def is_real(self) -> bool:
        """False for the scripted model, which says so on every surface."""
        ...

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        """One reply. A chain raises ``ChainExhausted``; a single entry raises ``ModelFailure``.

        A failure that another model cannot mend (bad request, context exceeded) is a ``ModelFailure`` from a chain too.
        """
        ...
