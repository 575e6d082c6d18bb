"""Live news of what this node did: what stands is in the records, so news that cannot be published is only logged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from crewlet import topics
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError
from crewlet.base.ids import Ids
from crewlet.base.trace import fresh_trace
from crewlet.events import Body, Event, new_event

__all__ = ["News"]

_log = structlog.get_logger(__name__)


class News:
    """Publishes events that begin a trace of their own."""

    def __init__(self, publish: Callable[[str, Event], Awaitable[Event]], clock: Clock, ids: Ids) -> None:
        self._publish = publish
        self._clock = clock
        self._ids = ids

    async def tell(self, body: Body, *, source: str = "") -> None:
        """Publish it; whoever did what it tells of must not fail for it."""
        event = new_event(body, trace=fresh_trace(self._ids), now=self._clock.now(), ids=self._ids, source=source)
        try:
            await self._publish(topics.event_topic(event.type), event)
        except CrewletError as error:
            _log.warning("news_lost", type=event.type, source=source, error=str(error))
