"""What a turn's recorded replies cost is counted before its end is on record: nobody looks at them after that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from crewlet.base import limits
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.inbox.contract import Trigger
from crewlet.inbox.journalled_turn import JournalledTurn
from crewlet.inbox.ports import SeatInboxParts
from crewlet.inbox.recorded_charges import RecordedCharge
from crewlet.inbox.seat_journal import SeatJournal
from crewlet.inbox.trigger_news import TriggerNews

__all__ = ["CountedReplies"]

_log = structlog.get_logger(__name__)


class CountedReplies:
    """Makes the charges again that a turn's process, or the one before it, is not known to have brought to an end.

    A charge is known by its lane and number, so that one that was counted is not counted twice.
    """

    def __init__(self, handle: str, parts: SeatInboxParts, news: TriggerNews, journal: SeatJournal) -> None:
        self._handle = handle
        self._parts = parts
        self._news = news
        self._journal = journal

    async def count(self, trigger: Trigger, turn: JournalledTurn) -> None:
        """Every reply on the turn's record is counted, or said not to be. Tried for ``limits.END_CHARGE_WAIT_S``.

        Raises ``Fenced``: the seat's new holder counts them.
        """
        if not turn.uncharged and not turn.is_unsure:
            return
        deadline_s = self._parts.clock.elapsed_s() + limits.END_CHARGE_WAIT_S
        if turn.is_unsure and (error := await self._until(deadline_s, lambda: self._look_again(turn))):
            # What is on record and known is charged all the same.
            _log.error("turn_replies_unread", seat=self._handle, turn=turn.turn_id, error=str(error))
        for charge in turn.uncharged:
            if error := await self._until(deadline_s, lambda charge=charge: self._parts.charge(self._handle, charge)):
                await self._say_uncounted(trigger, turn, charge, error)
            else:
                turn.counted(charge)

    async def _look_again(self, turn: JournalledTurn) -> None:
        turn.found_again((await self._journal.take_over()).turn)

    async def _until(self, deadline_s: float, attempt: Callable[[], Awaitable[None]]) -> Unavailable | None:
        """Tried until the deadline, once at least; what it failed with at last. Raises what else it raises."""
        pause_s = limits.JOURNAL_RETRY_FIRST_S
        while True:
            try:
                await attempt()
            except Unavailable as error:
                if self._parts.clock.elapsed_s() + pause_s >= deadline_s:
                    return error
                _log.warning("turn_charge_waits", seat=self._handle, error=str(error))
            else:
                return None
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, limits.JOURNAL_RETRY_MAX_S)

    async def _say_uncounted(
        self, trigger: Trigger, turn: JournalledTurn, charge: RecordedCharge, error: CrewletError
    ) -> None:
        _log.error(
            "turn_charge_uncounted",
            seat=self._handle,
            turn=turn.turn_id,
            lane=charge.lane,
            number=charge.number,
            tokens=charge.usage.total,
            error=str(error),
        )
        await self._news.uncounted(trigger, turn.turn_id, charge, str(error))
