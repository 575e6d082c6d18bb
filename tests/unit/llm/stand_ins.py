"""Models that answer or fail as told, for the tests of what stands in front of models."""

from __future__ import annotations

from crewlet.llm import (
    AssistantMessage,
    FailureKind,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OnDelta,
    OnFallback,
    StopReason,
    ToolSpec,
    Usage,
    UserMessage,
)

__all__ = ["ToldModel", "a_request"]


class ToldModel:
    """Answers with its own key, or raises the failure that it was told; counts its calls."""

    def __init__(self, key: str, fails: FailureKind | None = None, *, is_real: bool = True) -> None:
        self._key = key
        self._fails = fails
        self._is_real = is_real
        self.stop_reason = StopReason.END
        self.calls = 0

    @property
    def keys(self) -> tuple[str, ...]:
        return (self._key,)

    @property
    def is_real(self) -> bool:
        return self._is_real

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        self.calls += 1
        if self._fails is not None:
            raise ModelFailure(self._fails, f"{self._key} failed", provider_key=self._key)
        return ModelReply(AssistantMessage(f"from {self._key}"), self.stop_reason, Usage(), "model", self._key)


def a_request(*tools: str, text: str = "hello", **scenario: str) -> ModelRequest:
    return ModelRequest("system", (UserMessage(text),), tuple(ToolSpec(name, "", {}) for name in tools), scenario)
