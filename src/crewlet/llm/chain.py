"""The fallback chain: one call over several models, in the order in which a seat prefers them."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from crewlet.llm.contract import (
    ChainExhausted,
    FailureKind,
    Fallback,
    Model,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OnDelta,
    OnFallback,
)

__all__ = ["Chain"]

_log = structlog.get_logger(__name__)

_NOT_MENDED_BY_ANOTHER = frozenset({FailureKind.BAD_REQUEST, FailureKind.CONTEXT_EXCEEDED})


class Chain:
    """Models tried in order. It moves on after a failure that another model may mend, and after nothing else.

    A refusal is a reply, so it ends the call: it is never passed on to the next member.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        assert models, "a chain has at least one member"
        self._models = tuple(models)

    @property
    def keys(self) -> tuple[str, ...]:
        """The provider entries behind it, first choice first."""
        return tuple(key for model in self._models for key in model.keys)

    @property
    def is_real(self) -> bool:
        """True where any member is a real model; each reply names the one that served."""
        return any(model.is_real for model in self._models)

    async def complete(
        self, request: ModelRequest, *, on_delta: OnDelta | None = None, on_fallback: OnFallback | None = None
    ) -> ModelReply:
        """The first reply that a member gives. Raises ``ChainExhausted``, or ``ModelFailure`` where nobody could help.

        ``on_fallback`` is told of each member that failed, of the last one with nobody to follow (E-138).
        """
        last: ModelFailure | None = None
        for index, model in enumerate(self._models):
            try:
                return await model.complete(request, on_delta=on_delta)
            except ModelFailure as failure:
                if failure.kind in _NOT_MENDED_BY_ANOTHER:
                    raise
                last = failure
                following = self._models[index + 1 :]
                self._hand_over(failure, following[0].keys[0] if following else "", on_fallback)
        assert last is not None, "a chain has at least one member"
        raise ChainExhausted(self.keys, last)

    @staticmethod
    def _hand_over(failure: ModelFailure, to: str, on_fallback: OnFallback | None) -> None:
        _log.warning("provider_fallback", provider=failure.provider_key, to=to, reason=failure.kind, error=str(failure))
        if on_fallback is not None:
            on_fallback(Fallback(failure.provider_key, to, failure.kind, str(failure)))
