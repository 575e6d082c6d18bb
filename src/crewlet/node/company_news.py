"""What the event log hears of a changed company: who put which document in force, and which node runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from crewlet import topics
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError
from crewlet.base.ids import Ids
from crewlet.base.trace import fresh_trace
from crewlet.events import Body, Event, new_event
from crewlet.events.types import ConfigRevisionActivated, ConfigRevisionApplied
from crewlet.node.fleet_company import revision_of

__all__ = ["CompanyNews", "Revision"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A document of a company, and the number under which it is in force."""

    company: str
    document: str
    epoch: int


class CompanyNews:
    """Publishes it. What cannot be told is logged: the company is in force all the same."""

    def __init__(self, publish: Callable[[str, Event], Awaitable[Event]], clock: Clock, ids: Ids) -> None:
        self._publish = publish
        self._clock = clock
        self._ids = ids

    async def activated(self, revision: Revision, *, by: str) -> None:
        """Told by the node that was asked, once for the whole fleet."""
        await self._tell(
            ConfigRevisionActivated(
                company=revision.company,
                revision_id=revision_of(revision.document),
                epoch=revision.epoch,
                activated_by=by,
            )
        )

    async def applied(self, revision: Revision, *, trouble: str) -> None:
        """Told by every node, each for itself."""
        await self._tell(
            ConfigRevisionApplied(
                company=revision.company,
                revision_id=revision_of(revision.document),
                epoch=revision.epoch,
                trouble=trouble,
            )
        )

    async def _tell(self, body: Body) -> None:
        event = new_event(body, trace=fresh_trace(self._ids), now=self._clock.now(), ids=self._ids, source="engine")
        try:
            await self._publish(topics.event_topic(event.type), event)
        except CrewletError as error:
            _log.warning("company_news_lost", type=event.type, error=str(error))
