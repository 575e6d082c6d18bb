"""The event: an envelope every event shares, and a typed body where this build knows the type (E-146)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from crewlet.base.ids import Ids
from crewlet.base.trace import Trace

if TYPE_CHECKING:
    from crewlet.events.body import Body

__all__ = ["Event", "new_event"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened. ``data`` is ``None`` for a type this build does not know; ``extra`` keeps the rest.

    ``node`` is the node that first published it, written by the queue on a copy, never by a publisher. ``extra``
    holds every field that neither the envelope nor the body knows, verbatim, and is written back out; what a struct
    inside the body does not know stands there under that struct's own name.
    """

    id: str
    type: str
    timestamp: datetime
    source: str = ""
    node: str = ""
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    delegation_depth: int = 0
    parent_turn_id: str = ""
    delegation_chain: tuple[str, ...] = ()
    payload: Mapping[str, object] = field(default_factory=dict[str, object])
    data: Body | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def trace(self) -> Trace:
        """The trace context the event carries."""
        return Trace(self.trace_id, self.span_id, self.parent_span_id)

    @property
    def summary(self) -> str:
        """Who did what, in a person's words."""
        return self.type if self.data is None else self.data.summary()

    @property
    def actor(self) -> str:
        """Who: what the body says, then the source, then the agent's id, then ``system`` (E-153)."""
        said = "" if self.data is None else self.data.actor()
        agent_id = getattr(self.data, "agent_id", "") or self.extra.get("agent_id")
        return said or self.source or (agent_id if isinstance(agent_id, str) and agent_id else "system")

    def stamped(self, node: str) -> Event:
        """This event with ``node`` as its origin, unless it names one already."""
        if self.node or not node:
            return self
        # Each field by name: `replace` looks them all up anew, for every event that is published.
        return Event(
            id=self.id,
            type=self.type,
            timestamp=self.timestamp,
            source=self.source,
            node=node,
            trace_id=self.trace_id,
            span_id=self.span_id,
            parent_span_id=self.parent_span_id,
            delegation_depth=self.delegation_depth,
            parent_turn_id=self.parent_turn_id,
            delegation_chain=self.delegation_chain,
            payload=self.payload,
            data=self.data,
            extra=self.extra,
        )


def new_event(
    data: Body,
    *,
    trace: Trace,
    now: datetime,
    ids: Ids,
    event_id: str = "",
    source: str = "",
    delegation_depth: int = 0,
    parent_turn_id: str = "",
    delegation_chain: tuple[str, ...] = (),
) -> Event:
    """An event of ``data``'s type. The trace is an argument, never captured; ``event_id`` defaults to a fresh UUID."""
    return Event(
        id=event_id or str(ids.uuid()),
        type=data.event_type,
        timestamp=now,
        source=source,
        trace_id=trace.trace_id,
        span_id=trace.span_id,
        parent_span_id=trace.parent_span_id,
        delegation_depth=delegation_depth,
        parent_turn_id=parent_turn_id,
        delegation_chain=delegation_chain,
        data=data,
    )
