"""Brings the turn that a predecessor left half done to its end: its process died, or its inbox's loop did (D11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from crewlet.base.errors import CrewletError, Fenced, Unavailable
from crewlet.base.ids import TurnId
from crewlet.events import Event, decode
from crewlet.inbox.contract import Decision, Trigger, TurnOutcome
from crewlet.inbox.journal_state import LastTurn
from crewlet.inbox.journalled_turn import JournalledTurn
from crewlet.inbox.ports import SeatInboxParts
from crewlet.inbox.seat_journal import JournalRead, SeatJournal
from crewlet.inbox.seat_turns import SeatTurns
from crewlet.inbox.taking_over import Fate, fate_of
from crewlet.inbox.thread_shown import ThreadShown
from crewlet.inbox.trigger_news import TriggerNews
from crewlet.inbox.triggers import trigger_of
from crewlet.notify import ThreadBlock
from crewlet.queue import Ack, Defer, Outcome

__all__ = ["GoingOn"]

_log = structlog.get_logger(__name__)


class GoingOn:
    """The new holder's way with what stands in a seat's journal.

    ``granted`` says under which epoch a turn may run now, or why none may.
    """

    def __init__(
        self,
        handle: str,
        parts: SeatInboxParts,
        journal: SeatJournal,
        turns: SeatTurns,
        news: TriggerNews,
        granted: Callable[[], int | Defer],
    ) -> None:
        self._handle = handle
        self._parts = parts
        self._journal = journal
        self._turns = turns
        self._news = news
        self._granted = granted

    async def finish_what_was_left(self) -> Defer | None:
        """Where a turn of this tenure broke off without an end, bring it to one before another begins.

        Says why mail has to wait, where that has to. Raises ``Unavailable``.
        """
        if self._journal.is_taken_over:
            return None
        try:
            return await self._finished(await self._journal.take_over())
        except Fenced as fenced:
            return Defer(str(fenced))

    async def finish(self, found: JournalRead) -> None:
        """Bring what a take-over found to its end, or leave it to the seat's next holder.

        Raises ``Unavailable`` where it is to be tried again: whatever failed on the way is on record as far as it got,
        so that each try goes on where the last one stopped.
        """
        try:
            if not self._journal.is_taken_over:
                found = await self._journal.take_over()
            deferred = await self._finished(found)
        except Fenced as fenced:
            _log.info("turn_left_to_successor", seat=self._handle, reason=str(fenced))
            return
        if deferred is not None:
            raise Unavailable(deferred.reason)

    async def _finished(self, found: JournalRead) -> Defer | None:
        turn = found.turn
        if turn is None:
            return None
        if turn.ended is not None:
            await self._finish_end(turn)
            return None
        trigger = self._trigger_of(turn)
        if trigger is None:
            return None
        try:
            outcome = await self._decide(turn, trigger)
        except BaseException:
            self._journal.leave_open()
            raise
        if not isinstance(outcome, Defer):
            return None
        self._journal.leave_open()
        return outcome

    async def _finish_end(self, turn: LastTurn) -> None:
        """What an end names is worked, whether or not its process lived to record it."""
        assert turn.ended is not None
        self._journal.count_worked(turn.ended)
        if turn.ids:
            await self._parts.ledger.record(
                self._handle, [*turn.ids], turn_id=turn.opened.turn_id, outcome=turn.ended.decision
            )
        if turn.opened.events:
            # Its process lived to write the end, and not to let go of the rest.
            self._parts.ended(self._handle, turn.opened.turn_id)

    async def _decide(self, turn: LastTurn, trigger: Trigger) -> Outcome:
        """What the turn's mail is to be told; a ``Defer`` where the turn has no end yet."""
        ids = [event.id for event in trigger.events]
        worked = await self._parts.ledger.worked(self._handle, ids)
        stopped = self._parts.stopped_since(self._handle, turn.opened.at)
        fate = fate_of(turn, worked=worked, event_ids=ids, stopped=bool(stopped))
        _log.info(
            "turn_taken_over",
            seat=self._handle,
            turn=turn.opened.turn_id,
            fate=fate.name.lower(),
            **_revisions(turn.opened.revision, self._parts.revision()),
        )
        journalled = JournalledTurn(self._journal, trigger, TurnId(turn.opened.turn_id), turn)
        spent = [event for event in trigger.events if event.id in turn.opened.spent]
        if fate is Fate.RESUME:
            return await self._resume(trigger, journalled, spent)
        outcome = _outcome_of(fate, turn, stopped)
        # Before the end is on record: nobody looks at the turn again after that.
        await self._news.ended_unrun(trigger, outcome, comes_back=fate is Fate.LEAVE and not spent)
        await self._news.notes_expired(trigger, outcome.turn_id, turn.notes_left)
        if fate is Fate.WORKED:
            await self._turns.count(trigger, journalled)
            await journalled.end(outcome="ack", decision=str(outcome.decision), ids=())
            self._parts.ended(self._handle, journalled.turn_id)
            return Ack()
        return await self._turns.end(trigger, journalled, outcome, spent=spent)

    async def _resume(self, trigger: Trigger, turn: JournalledTurn, spent: Sequence[Event]) -> Outcome:
        if not await self._parts.gate.enter():
            raise Fenced("this node is draining")
        try:
            epoch = self._granted()
            if isinstance(epoch, Defer):
                return epoch
            return await self._turns.go_on(trigger, turn, epoch=epoch, spent=spent)
        finally:
            self._parts.gate.leave()

    def _trigger_of(self, turn: LastTurn) -> Trigger | None:
        """The trigger of a recorded turn; ``None`` where this build cannot read it, and its events come back."""
        try:
            events: list[Event] = [decode(bytes(raw)) for raw in turn.opened.events]
            trigger = trigger_of(self._handle, events, self._parts.sources, headroom=turn.opened.headroom)
        except CrewletError as error:
            _log.error("journal_unreadable", seat=self._handle, turn=turn.opened.turn_id, error=str(error))
            return None
        shown = ThreadBlock(turn.opened.thread, turn.opened.shown) if turn.opened.thread else None
        return replace(trigger, showing=ThreadShown.of(shown))


def _revisions(began_with: str, now: str) -> dict[str, str]:
    """The document that a turn began with beside the one in force, where they are known to differ."""
    differ = began_with and now and began_with != now
    return {"revision": began_with, "revision_now": now} if differ else {}


def _outcome_of(fate: Fate, turn: LastTurn, stopped: str) -> TurnOutcome:
    """The end of a turn that is not run any further."""
    turn_id = TurnId(turn.opened.turn_id)
    if fate is Fate.STOP:
        return TurnOutcome(turn_id=turn_id, decision=Decision.STOPPED, finished=True, error=stopped)
    if fate is Fate.WORKED:
        return TurnOutcome(turn_id=turn_id, decision=Decision.SKIPPED, finished=True)
    return TurnOutcome(
        turn_id=turn_id,
        decision=Decision.FAILED,
        finished=False,
        error=f"taken over {turn.idle_resumes} times without a new reply",
        error_kind="not_resumed",
        reached_outside=fate is Fate.GIVE_UP,
    )
