"""The W3C trace context as events carry it. Spans and export live in ``tracing``."""

from __future__ import annotations

from dataclasses import dataclass

from crewlet.base.ids import Ids

__all__ = ["Trace", "child_of", "fresh_trace"]


@dataclass(frozen=True, slots=True)
class Trace:
    """Where an event stands: its trace (32 hex digits), its span and the span above (16 hex digits each)."""

    trace_id: str
    span_id: str
    parent_span_id: str = ""


def fresh_trace(ids: Ids) -> Trace:
    """A new root: an event outside any span still belongs to a trace of its own (E-184)."""
    return Trace(ids.hex(32), ids.hex(16))


def child_of(parent: Trace, ids: Ids) -> Trace:
    """A new span under ``parent``, in its trace; a root where ``parent`` names no trace (an event without ids)."""
    if not parent.trace_id:
        return fresh_trace(ids)
    return Trace(parent.trace_id, ids.hex(16), parent.span_id)
