"""Spans: what took how long, under the very ids that the events of the same work carry."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Token
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self

from crewlet.base.clock import Clock
from crewlet.base.ids import Ids
from crewlet.base.trace import Trace, child_of
from crewlet.tracing.current import enter, leave

__all__ = ["Attribute", "Span", "SpanRecord", "SpanSink", "Tracer"]

Attribute = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRecord:
    """A span that has ended. ``error`` is empty where it ended well."""

    name: str
    trace: Trace
    started_at: datetime
    ended_at: datetime
    attributes: Mapping[str, Attribute]
    error: str


class SpanSink(Protocol):
    """Where finished spans go."""

    def ended(self, span: SpanRecord) -> None:
        """Take one. Neither waits nor raises: what it cannot keep is lost."""
        ...


class Span:
    """One piece of work while it runs; entered with ``with``, in one task. What is raised out of it is its error."""

    __slots__ = ("_attributes", "_clock", "_error", "_name", "_sink", "_started_at", "_token", "trace")

    def __init__(
        self, name: str, trace: Trace, attributes: dict[str, Attribute], *, clock: Clock, sink: SpanSink | None
    ) -> None:
        self.trace = trace
        self._name = name
        self._attributes = attributes
        self._clock = clock
        self._sink = sink
        self._error = ""
        self._started_at: datetime | None = None
        self._token: Token[Trace | None] | None = None

    def note(self, **attributes: Attribute) -> None:
        """Keep more of what became of it."""
        self._attributes.update(attributes)

    def failed(self, why: str) -> None:
        """It ended badly without raising."""
        self._error = why

    def __enter__(self) -> Self:
        self._token = enter(self.trace)
        if self._sink is not None:
            self._started_at = self._clock.now()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None
    ) -> None:
        assert self._token is not None, "it was never entered"
        leave(self._token)
        if self._sink is None or self._started_at is None:
            return
        if kind is not None:
            self._error = f"{kind.__name__}: {error}" if str(error) else kind.__name__
        self._sink.ended(
            SpanRecord(
                name=self._name,
                trace=self.trace,
                started_at=self._started_at,
                ended_at=self._clock.now(),
                attributes=self._attributes,
                error=self._error,
            )
        )


class Tracer:
    """Makes spans. Without a sink a span does no more than say what trace its block runs in."""

    def __init__(self, clock: Clock, ids: Ids, sink: SpanSink | None = None) -> None:
        self._clock = clock
        self._ids = ids
        self._sink = sink

    def span(self, name: str, trace: Trace, **attributes: Attribute) -> Span:
        """The span ``trace`` itself: its ids are those that the events of this work carry (E-185)."""
        return Span(name, trace, attributes, clock=self._clock, sink=self._sink)

    def child(self, name: str, parent: Trace, **attributes: Attribute) -> Span:
        """A new span under ``parent``, for work that emits no events of its own."""
        return self.span(name, child_of(parent, self._ids), **attributes)
