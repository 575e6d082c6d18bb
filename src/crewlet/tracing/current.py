"""The trace that the running code belongs to; it follows the task and whatever the task starts."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar, Token

from crewlet.base.ids import Ids
from crewlet.base.trace import Trace, fresh_trace

__all__ = ["enter", "leave", "trace_of", "under"]

_CURRENT: ContextVar[Trace | None] = ContextVar("trace", default=None)


def trace_of(ids: Ids) -> Trace:
    """The ids of the span that the caller runs in; a fresh root where it runs in none, never an empty one (E-184).

    What is read here is handed to the maker of an event as an argument: no event picks up its surroundings (E-183).
    """
    return _CURRENT.get() or fresh_trace(ids)


@contextmanager
def under(trace: Trace) -> Generator[None]:
    """Run the block as part of ``trace``, which came with an event; one without ids changes nothing (E-182)."""
    if not trace.trace_id or not trace.span_id:
        yield
        return
    token = enter(trace)
    try:
        yield
    finally:
        leave(token)


def enter(trace: Trace) -> Token[Trace | None]:
    """From here on the caller runs in ``trace``, until :func:`leave`."""
    return _CURRENT.set(trace)


def leave(token: Token[Trace | None]) -> None:
    """Back to where the caller was before."""
    _CURRENT.reset(token)
