"""The last delivery of work that did not end: the queue makes a dead letter of it, and whoever waits must hear so."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import structlog

from crewlet.base.errors import CrewletError
from crewlet.base.ids import TurnId
from crewlet.events import Event
from crewlet.inbox.contract import Decision, Trigger, TurnOutcome
from crewlet.inbox.ports import SeatInboxParts
from crewlet.inbox.trigger_news import TriggerNews
from crewlet.inbox.triggers import UnreadableTrigger, trigger_of
from crewlet.inbox.verdict import SPENT

__all__ = ["GivingUp"]

_log = structlog.get_logger(__name__)


class GivingUp:
    """Answers and says it. What fails of that is logged: no further delivery would do it better."""

    def __init__(self, handle: str, parts: SeatInboxParts, news: TriggerNews) -> None:
        self._handle = handle
        self._parts = parts
        self._news = news

    async def give_up(self, events: Sequence[Event], detail: str) -> None:
        """None of ``events`` comes back; those that it was worked with may."""
        for event in events:
            with suppress(UnreadableTrigger):
                await self._answer(trigger_of(self._handle, [event], self._parts.sources, headroom=0), detail)
        await self._news.given_up(events, SPENT, detail=detail)

    async def _answer(self, trigger: Trigger, detail: str) -> None:
        failed = TurnOutcome(turn_id=TurnId(""), decision=Decision.FAILED, finished=False, error=detail)
        try:
            await self._parts.settle(trigger, failed)
        except CrewletError as error:
            _log.error("given_up_unanswered", seat=self._handle, trigger=trigger.lead.id, error=str(error))
