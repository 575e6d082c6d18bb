"""The scripted model: replies and tool calls from a file, for examples and tests. No real model, and it says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from crewlet.llm.contract import (
    AssistantMessage,
    FailureKind,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OnDelta,
    OnFallback,
)
from crewlet.llm.script import FailRule, Script
from crewlet.llm.script_reader import ScriptReader

__all__ = ["SCRIPTED_MODEL", "ScriptedModel"]

SCRIPTED_MODEL: Final = "scripted"
"""The name that events, records and answers show in place of a vendor's model."""
_PIECES: Final = 4


class ScriptedModel:
    """Answers from a script, at once unless the script asks for a delay; the same request gets the same answer."""

    def __init__(self, key: str, script: Script) -> None:
        self._key = key
        self._reader = ScriptReader(script)

    @property
    def keys(self) -> tuple[str, ...]:
        """The one entry behind it."""
        return (self._key,)

    @property
    def is_real(self) -> bool:
        """Always false."""
        return False

    async def aclose(self) -> None:
        """Nothing to close."""

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        """The script's reply. Raises ``ModelFailure`` where the script says so, or says nothing and has no defaults."""
        answer = self._reader.answer(request)
        if answer.delay_ms:
            await asyncio.sleep(answer.delay_ms / 1000)
        if answer.fail is not None:
            raise self._failure(answer.fail, answer.text)
        if on_delta is not None and answer.text:
            for piece in _pieces(answer.text):
                on_delta(piece)
                await asyncio.sleep(0)
        message = AssistantMessage(answer.text, calls=answer.calls, backend=SCRIPTED_MODEL, model=SCRIPTED_MODEL)
        return ModelReply(message, answer.stop_reason, answer.usage, SCRIPTED_MODEL, self._key)

    def _failure(self, fail: FailRule, text: str) -> ModelFailure:
        said = text or f"the script says {fail.kind}"
        return ModelFailure(
            FailureKind(fail.kind), f"{self._key}: {said}", provider_key=self._key, retry_after_s=fail.retry_after_s
        )


def _pieces(text: str) -> Iterator[str]:
    """``text`` in a few pieces, as a model streams it."""
    size = max(-(-len(text) // _PIECES), 1)
    for start in range(0, len(text), size):
        yield text[start : start + size]
