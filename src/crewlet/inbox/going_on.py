"""Brings the turn that a predecessor left half done to its end: its process died, or its inbox's loop did (D11)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from crewlet.base import limits
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
from crewlet.inbox.triggers import trigger_of
from crewlet.queue import Defer

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
        granted: Callable[[], int | Defer],
    ) -> None:
        self._handle = handle
        self._parts = parts
        self._journal = journal
        self._turns = turns
        self._granted = granted

    async def finish_what_was_left(self) -> None:
        """Where a turn of this tenure broke off without an end, bring it to one before another begins.

        Raises ``Fenced``, ``Unavailable``.
        """
        if not self._journal.is_taken_over:
            await self._finished(await self._journal.take_over())

    async def finish(self, found: JournalRead) -> None:
        """Bring what a take-over found to its end; tried again until it is there, or the seat is somebody else's.

        Whatever fails on the way is on record as far as it got, so that each try goes on where the last one stopped.
        """
        pause_s = limits.JOURNAL_RETRY_FIRST_S
        while True:
            try:
                if not self._journal.is_taken_over:
                    found = await self._journal.take_over()
                await self._finished(found)
            except Fenced as fenced:
                _log.info("turn_left_to_successor", seat=self._handle, reason=str(fenced))
                return
            except Unavailable as error:
                _log.warning("turn_not_resumed", seat=self._handle, error=str(error))
                self._journal.leave_open()
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, limits.JOURNAL_RETRY_MAX_S)
            else:
                return

    async def _finished(self, found: JournalRead) -> None:
        turn = found.turn
        if turn is None:
            return
        if turn.ended is not None:
            await self._finish_end(turn)
            return
        trigger = self._trigger_of(turn)
        if trigger is None:
            return
        ended = False
        try:
            ended = await self._decide(turn, trigger)
        finally:
            if not ended:
                self._journal.leave_open()

    async def _finish_end(self, turn: LastTurn) -> None:
        """What an end names is worked, whether or not its process lived to record it."""
        assert turn.ended is not None
        self._journal.count_worked(turn.ended)
        if turn.ids:
            await self._parts.ledger.record(
                self._handle, [*turn.ids], turn_id=turn.opened.turn_id, outcome=turn.ended.decision
            )

    async def _decide(self, turn: LastTurn, trigger: Trigger) -> bool:
        """Whether the turn has an end now."""
        ids = [event.id for event in trigger.events]
        worked = await self._parts.ledger.worked(self._handle, ids)
        stopped = self._parts.stopped_since(self._handle, turn.opened.at)
        fate = fate_of(turn, worked=worked, event_ids=ids, stopped=bool(stopped))
        _log.info("turn_taken_over", seat=self._handle, turn=turn.opened.turn_id, fate=fate.name.lower())
        journalled = JournalledTurn(self._journal, trigger, TurnId(turn.opened.turn_id), turn)
        match fate:
            case Fate.WORKED:
                await journalled.end(outcome="ack", decision=str(Decision.SKIPPED), ids=())
            case Fate.RESUME:
                return await self._resume(trigger, journalled)
            case _:
                await self._turns.end(trigger, journalled, _outcome_of(fate, turn, stopped))
        return True

    async def _resume(self, trigger: Trigger, turn: JournalledTurn) -> bool:
        if not await self._parts.gate.enter():
            raise Fenced("this node is draining")
        try:
            epoch = self._granted()
            if isinstance(epoch, Defer):
                raise Unavailable(epoch.reason)
            outcome = await self._turns.go_on(trigger, turn, epoch=epoch)
        finally:
            self._parts.gate.leave()
        return not isinstance(outcome, Defer)

    def _trigger_of(self, turn: LastTurn) -> Trigger | None:
        """The trigger of a recorded turn; ``None`` where this build cannot read it, and its events come back."""
        try:
            events: list[Event] = [decode(bytes(raw)) for raw in turn.opened.events]
            return trigger_of(self._handle, events, self._parts.sources, headroom=turn.opened.headroom)
        except CrewletError as error:
            _log.error("journal_unreadable", seat=self._handle, turn=turn.opened.turn_id, error=str(error))
            return None


def _outcome_of(fate: Fate, turn: LastTurn, stopped: str) -> TurnOutcome:
    """The end of a turn that is not run any further."""
    turn_id = TurnId(turn.opened.turn_id)
    if fate is Fate.STOP:
        return TurnOutcome(turn_id=turn_id, decision=Decision.STOPPED, finished=True, error=stopped)
    return TurnOutcome(
        turn_id=turn_id,
        decision=Decision.FAILED,
        finished=False,
        error=f"taken over {turn.idle_resumes} times without a new reply",
        error_kind="not_resumed",
        reached_outside=fate is Fate.GIVE_UP,
    )
