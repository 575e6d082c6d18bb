"""Mail of a seat that was buried although no inbox had a say in it: given up aloud, as any other (S1)."""

from __future__ import annotations

import structlog

from crewlet.base.errors import CrewletError
from crewlet.events import Event, decode
from crewlet.inbox.giving_up import GivingUp
from crewlet.inbox.journal_entries import decode_entry
from crewlet.inbox.journal_state import last_turn_of
from crewlet.inbox.message_keys import ledger_key_of
from crewlet.inbox.ports import SeatInboxParts
from crewlet.inbox.trigger_news import TriggerNews
from crewlet.inbox.triggers import runs_turn
from crewlet.queue import Log, UnheardLetter, inbox_of, owner_of_mailbox

__all__ = ["UnheardMail"]

_log = structlog.get_logger(__name__)


class UnheardMail:
    """Speaks for whichever seat's inbox a letter is from, held here or not."""

    def __init__(self, parts: SeatInboxParts, journals: Log) -> None:
        self._parts = parts
        self._journals = journals

    async def heard(self, letter: UnheardLetter) -> None:
        """Answer whoever waits for the work, and say that it does not come back.

        What a holder died with may be worked, or be gone on with by its turn's record: that speaks for itself.
        """
        handle = owner_of_mailbox(letter.subscription)
        if handle is None or letter.subscription != inbox_of(handle) or not runs_turn(letter.event):
            return
        if letter.holder_lost and await self._speaks_for_itself(handle, letter.event):
            return
        giving_up = GivingUp(handle, self._parts, TriggerNews(handle, self._parts))
        await giving_up.give_up([letter.event], letter.reason)

    async def _speaks_for_itself(self, handle: str, event: Event) -> bool:
        keys = [key for key in (event.id, ledger_key_of(event, self._parts.sources)) if key]
        if await self._parts.ledger.worked(handle, keys):
            return True
        try:
            found = [(each.sequence, decode_entry(each.payload)) for each in await self._journals.read(handle)]
            turn = last_turn_of(found)
            if turn is None:
                return False
            if turn.ended is not None:
                return turn.ended.outcome == "ack" and event.id in turn.ids
            return any(decode(bytes(raw)).id == event.id for raw in turn.opened.events)
        except CrewletError as error:
            # Said once too often is better than never.
            _log.warning("unheard_mail_unsure", seat=handle, event_id=event.id, error=str(error))
            return False
