"""One seat's turns: opened, run, and ended, in the order in which a crash loses and repeats nothing (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import structlog

from crewlet.base import limits
from crewlet.base.errors import Fenced, StoppedByPerson, Unavailable
from crewlet.base.ids import TurnId
from crewlet.events import Event
from crewlet.inbox.contract import Decision, Trigger, TurnOutcome
from crewlet.inbox.ports import SeatInboxParts
from crewlet.inbox.thread_showing import thread_around
from crewlet.inbox.trigger_news import TriggerNews
from crewlet.inbox.turn_journal import NoJournal
from crewlet.inbox.verdict import SPENT, ids_worked, verdict_of
from crewlet.queue import Ack, Defer, Nak, Outcome

__all__ = ["SeatTurns"]

_log = structlog.get_logger(__name__)


class SeatTurns:
    """Runs triggers of one seat to the outcome that the queue is told."""

    def __init__(self, handle: str, parts: SeatInboxParts, news: TriggerNews) -> None:
        self._handle = handle
        self._parts = parts
        self._news = news

    async def work(self, trigger: Trigger, *, epoch: int, spent: Sequence[Event]) -> Outcome:
        """Open a turn under the grant of ``epoch``, run it, end it. ``spent``: what a hand-back makes a dead letter.

        Raises ``Unavailable`` where the answer could not be handed over.
        """
        fence = self._parts.admission.fence(self._handle, epoch)
        trigger, journal = await self._opened(trigger)
        try:
            outcome = await self._parts.run_turn(trigger, fence, journal)
        except StoppedByPerson as stopped:
            outcome = TurnOutcome(turn_id=TurnId(""), decision=Decision.STOPPED, finished=True, error=str(stopped))
        except Fenced as fenced:
            return Defer(str(fenced))
        shown = () if trigger.thread is None else trigger.thread.waiting
        return await self._ended(trigger, replace(outcome, shown_messages=shown), spent)

    async def _opened(self, trigger: Trigger) -> tuple[Trigger, NoJournal]:
        """A turn's beginning: what is read for it, what is told of it, and its journal."""
        trigger = replace(trigger, thread=await thread_around(trigger, self._parts.sources))
        await self._news.coalesced(trigger)
        return trigger, NoJournal(TurnId(str(self._parts.ids.uuid())))

    async def _ended(self, trigger: Trigger, outcome: TurnOutcome, spent: Sequence[Event]) -> Outcome:
        """A turn's end: decided, then handed over, then said, then recorded, and only then acknowledged."""
        verdict = verdict_of(outcome, headroom=trigger.headroom)
        if verdict.parked:
            return await self._parts.park.refuses(self._handle) or Defer(outcome.error)
        if verdict.record or verdict.abandoned:
            await self._settle(trigger, outcome)
        if verdict.abandoned:
            given_up = trigger.events if verdict.abandoned != SPENT else spent
            await self._news.given_up(given_up, verdict.abandoned, detail=outcome.error, turn_id=outcome.turn_id)
        if not verdict.record:
            return Nak(outcome.error_kind or outcome.error)
        await self._parts.ledger.record(
            self._handle, [*ids_worked(trigger, outcome)], turn_id=outcome.turn_id, outcome=str(outcome.decision)
        )
        return Ack()

    async def _settle(self, trigger: Trigger, outcome: TurnOutcome) -> None:
        """Hand the answer over, tried a few times: handing the delivery back instead would run the whole turn again."""
        pause_s = limits.ANSWER_BACKOFF_FIRST_S
        for _ in range(limits.ANSWER_ATTEMPTS_MAX - 1):
            try:
                await self._parts.settle(trigger, outcome)
            except Unavailable as error:
                _log.warning("answer_not_handed_over", seat=self._handle, turn=outcome.turn_id, error=str(error))
                await asyncio.sleep(pause_s)
                pause_s *= 2
            else:
                return
        await self._parts.settle(trigger, outcome)
