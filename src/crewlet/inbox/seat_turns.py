"""One seat's turns: opened, run, and ended, in the order in which a crash loses and repeats nothing (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import structlog

from crewlet.base import limits
from crewlet.base.errors import CrewletError, Fenced, StoppedByPerson, Unavailable
from crewlet.base.ids import TurnId
from crewlet.events import Event
from crewlet.inbox.contract import Decision, Trigger, TurnOutcome
from crewlet.inbox.counting import CountedReplies
from crewlet.inbox.journalled_turn import JournalledTurn
from crewlet.inbox.ports import SeatInboxParts
from crewlet.inbox.seat_journal import SeatJournal
from crewlet.inbox.thread_showing import thread_around
from crewlet.inbox.thread_shown import ThreadShown
from crewlet.inbox.trigger_news import TriggerNews
from crewlet.inbox.turn_journal import NoJournal
from crewlet.inbox.verdict import PANICKED, SPENT, ids_worked, verdict_of
from crewlet.queue import Ack, Defer, Nak, Outcome

__all__ = ["SeatTurns"]

_log = structlog.get_logger(__name__)


class SeatTurns:
    """Runs triggers of one seat to the outcome that the queue is told."""

    def __init__(self, handle: str, parts: SeatInboxParts, news: TriggerNews, journal: SeatJournal | None) -> None:
        self._handle = handle
        self._parts = parts
        self._news = news
        self._journal = journal
        self._counted = None if journal is None else CountedReplies(handle, parts, news, journal)

    async def work(self, trigger: Trigger, *, epoch: int, spent: Sequence[Event]) -> Outcome:
        """Open a turn under the grant of ``epoch``, run it, end it. ``spent``: what a hand-back makes a dead letter.

        Raises ``Unavailable`` where the answer could not be handed over, or the turn's end not be told.
        """
        trigger = self._with_thread(trigger)
        await self._news.coalesced(trigger)
        turn_id = TurnId(str(self._parts.ids.uuid()))
        if self._journal is None:
            return await self._run(trigger, NoJournal(turn_id), epoch=epoch, spent=spent)
        turn = JournalledTurn(self._journal, trigger, turn_id, spent=spent)
        return await self._run(trigger, turn, epoch=epoch, spent=spent)

    def _with_thread(self, trigger: Trigger) -> Trigger:
        return replace(trigger, showing=ThreadShown(lambda: thread_around(trigger, self._parts.sources)))

    async def go_on(self, trigger: Trigger, turn: JournalledTurn, *, epoch: int, spent: Sequence[Event]) -> Outcome:
        """Run the rest of a turn that a predecessor left, and end it. Nobody waits for the outcome."""
        return await self._run(trigger, turn, epoch=epoch, spent=spent)

    async def end(
        self, trigger: Trigger, turn: JournalledTurn, outcome: TurnOutcome, *, spent: Sequence[Event]
    ) -> Outcome:
        """End a turn that a predecessor left, without running any more of it."""
        return await self._ended(trigger, turn, outcome, spent)

    async def count(self, trigger: Trigger, turn: JournalledTurn) -> None:
        """What the turn's replies cost is counted, or said not to be. Raises ``Fenced``."""
        if self._counted is not None:
            await self._counted.count(trigger, turn)

    async def _run(
        self, trigger: Trigger, journal: JournalledTurn | NoJournal, *, epoch: int, spent: Sequence[Event]
    ) -> Outcome:
        fence = self._parts.admission.fence(self._handle, epoch)
        try:
            outcome = await self._parts.run_turn(trigger, fence, journal)
        except StoppedByPerson as stopped:
            outcome = TurnOutcome(turn_id=TurnId(""), decision=Decision.STOPPED, finished=True, error=str(stopped))
        except Fenced as fenced:
            self._leave_open()
            return Defer(str(fenced))
        except CrewletError:
            raise
        except Exception as panic:  # noqa: BLE001 - supervisor: a defect, which a redelivery would only meet again
            _log.exception("dispatch_panicked", seat=self._handle, trigger=trigger.lead.id)
            outcome = _panicked(panic)
        shown = () if trigger.thread is None else trigger.thread.waiting
        # A turn that breaks before it has gone through its record has reached what that says all the same.
        reached = outcome.reached_outside or journal.reached_outside
        outcome = replace(outcome, shown_messages=shown, reached_outside=reached)
        return await self._ended(trigger, journal, outcome, spent)

    async def _ended(
        self, trigger: Trigger, journal: JournalledTurn | NoJournal, outcome: TurnOutcome, spent: Sequence[Event]
    ) -> Outcome:
        ended = await self._end_of(trigger, journal, outcome, spent)
        if isinstance(journal, JournalledTurn):
            await journal.forget()
        return ended

    async def _end_of(
        self, trigger: Trigger, journal: JournalledTurn | NoJournal, outcome: TurnOutcome, spent: Sequence[Event]
    ) -> Outcome:
        """A turn's end: decided, counted, handed over, said, on record in journal and ledger, then acknowledged.

        A turn whose seat has moved is its new holder's, whatever came of it here: it is deferred.
        """
        verdict = verdict_of(outcome, headroom=trigger.headroom)
        if isinstance(journal, JournalledTurn):
            try:
                await self.count(trigger, journal)
            except Fenced as fenced:
                self._leave_open()
                return Defer(str(fenced))
        if verdict.parked:
            await self._record_end(journal, "defer", outcome)
            return await self._parts.park.refuses(self._handle) or Defer(outcome.error)
        if verdict.record or verdict.abandoned:
            await self._settle(trigger, outcome)
        if verdict.abandoned:
            given_up = trigger.events if verdict.abandoned != SPENT else spent
            await self._news.given_up(given_up, verdict.abandoned, detail=outcome.error, turn_id=outcome.turn_id)
        if not verdict.record:
            moved = await self._record_end(journal, "nak", outcome)
            return moved or Nak(outcome.error_kind or outcome.error)
        ids = ids_worked(trigger, outcome)
        if moved := await self._record_end(journal, "ack", outcome, ids):
            return moved
        await self._parts.ledger.record(self._handle, [*ids], turn_id=outcome.turn_id, outcome=str(outcome.decision))
        return Ack()

    async def _record_end(
        self, journal: JournalledTurn | NoJournal, word: str, outcome: TurnOutcome, ids: tuple[str, ...] = ()
    ) -> Defer | None:
        """The end is on record, and what no successor needs any more is forgotten; a ``Defer`` where the seat moved.

        A journal that cannot be written hinders nobody: whoever takes the turn over finds it in the ledger, or goes on
        with it where it was to come back.
        """
        try:
            if isinstance(journal, JournalledTurn):
                await journal.end(outcome=word, decision=str(outcome.decision), ids=ids)
        except Fenced as fenced:
            self._leave_open()
            return Defer(str(fenced))
        except Unavailable as error:
            self._leave_open()
            # Somebody may yet go on with it, and has to be known by what it charged.
            _log.error("journal_end_unwritten", seat=self._handle, turn=journal.turn_id, error=str(error))
        else:
            self._parts.ended(self._handle, journal.turn_id)
        return None

    def _leave_open(self) -> None:
        if self._journal is not None:
            self._journal.leave_open()

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


def _panicked(panic: Exception) -> TurnOutcome:
    """Whether it had reached outside nobody can say, so it counts as if it had (S-125)."""
    return TurnOutcome(
        turn_id=TurnId(""),
        decision=Decision.FAILED,
        finished=True,
        error=f"{type(panic).__name__}: {panic}",
        error_kind=PANICKED,
        reached_outside=True,
    )
