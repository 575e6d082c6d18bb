"""One seat's inbox: from a partition of a haul to a finished turn and the outcome that the queue is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import structlog

from crewlet import topics
from crewlet.events import Event
from crewlet.events.types import ExternalNotification
from crewlet.inbox.contract import Trigger
from crewlet.inbox.digest import Unmergeable
from crewlet.inbox.giving_up import GivingUp
from crewlet.inbox.going_on import GoingOn
from crewlet.inbox.ports import SeatInboxParts
from crewlet.inbox.screening import asked_of_ledger, screened, spent_of, without_repeats
from crewlet.inbox.seat_journal import JournalRead, SeatJournal
from crewlet.inbox.seat_turns import SeatTurns
from crewlet.inbox.trigger_news import TriggerNews
from crewlet.inbox.triggers import runs_turn, trigger_of
from crewlet.queue import Ack, Batch, Defer, Delivery, Outcome, put_back

__all__ = ["SeatInbox"]

_log = structlog.get_logger(__name__)


class SeatInbox:
    """The handler of a seat's inbox subscription. One partition at a time, acknowledged after its turn.

    Without a ``journal`` a turn leaves nothing behind.
    """

    def __init__(self, handle: str, parts: SeatInboxParts, journal: SeatJournal | None = None) -> None:
        self._handle = handle
        self._parts = parts
        self._news = TriggerNews(handle, parts)
        self._journal = journal
        self._turns = SeatTurns(handle, parts, self._news, journal)
        self._going_on = (
            None if journal is None else GoingOn(handle, parts, journal, self._turns, self._news, self._granted)
        )
        self._giving_up = GivingUp(handle, parts, self._news)

    async def handle(self, batch: Batch) -> Outcome:
        """Work one partition: one turn for all of it.

        Defers when the seat is not (provably) this node's, or has to wait; acknowledges what was worked before or
        runs no turn; else runs the turn and decides by what its record proves. ``Unavailable`` from settling naks: the
        turn's effects are repeatable, its answer is not to be lost. A last delivery that does not end the work is
        given up aloud, since the queue makes a dead letter of it: whoever waits for it must hear so.
        """
        work = self._work_in(batch)
        if not work:
            return Ack()
        try:
            outcome = await self._outcome_of(work)
        except Exception as error:
            await self._giving_up.give_up(spent_of(work), str(error) or type(error).__name__)
            raise
        if isinstance(outcome, Defer):
            await self._giving_up.give_up(spent_of(work), outcome.reason)
        return outcome

    async def _outcome_of(self, work: tuple[Delivery, ...]) -> Outcome:
        epoch = await self._admitted()
        if isinstance(epoch, Defer):
            return epoch
        if self._going_on is not None and (waits := await self._going_on.finish_what_was_left()):
            return waits
        fresh = await self._fresh(work)
        if not fresh:
            return Ack()
        together = await self._together(fresh)
        return await self._past_the_gate(self._trigger(together), epoch, spent_of(together))

    async def go_on(self, found: JournalRead) -> None:
        """Bring to its end what a predecessor left half done, before any delivery.

        Raises ``Unavailable`` where it is to be tried again.
        """
        assert self._going_on is not None, "only a journal is taken over"
        await self._going_on.finish(found)

    def _work_in(self, batch: Batch) -> tuple[Delivery, ...]:
        """What of it runs a turn, each event once; the rest is dropped."""
        for delivery in batch.deliveries:
            if not runs_turn(delivery.event):
                _log.info(
                    "inbox_event_dropped", seat=self._handle, type=delivery.event.type, event_id=delivery.event.id
                )
        return without_repeats([delivery for delivery in batch.deliveries if runs_turn(delivery.event)])

    async def _admitted(self) -> int | Defer:
        """The epoch to run under, or why no turn may start: the seat first, then what holds its mail back."""
        epoch = self._granted()
        if isinstance(epoch, Defer):
            return epoch
        return await self._parts.holds.refuses(self._handle) or await self._parts.park.refuses(self._handle) or epoch

    def _granted(self) -> int | Defer:
        if not self._parts.posture.admits_work():
            return Defer("this node's configuration is behind the company's")
        if why := self._parts.withheld(self._handle):
            return Defer(why)
        epoch = self._parts.admission.may_start(self._handle)
        return Defer(f"seat {self._handle!r} is not owned here") if epoch is None else epoch

    async def _fresh(self, work: Sequence[Delivery]) -> tuple[Delivery, ...]:
        """What the ledger does not have, by either key; the rest is said to be worked."""
        chat_keys = asked_of_ledger(work, self._parts.sources)
        ids = [delivery.event.id for delivery in work]
        asked = [*ids, *chat_keys.values()]
        recorded = await self._parts.ledger.worked(self._handle, asked)
        if self._journal is not None:
            recorded |= self._journal.worked(asked)
        found = screened(work, recorded, chat_keys)
        for event, why in found.worked:
            await self._news.skipped(event, why, detail="the completion ledger has it")
        return found.fresh

    async def _together(self, work: tuple[Delivery, ...]) -> tuple[Delivery, ...]:
        """What is worked in one turn: all of it, or its first event, where it cannot be merged (E-104).

        The others are put back before anything runs: a turn that ran must not run again because a later event could
        not be put back. Raises what a publish raises.
        """
        try:
            self._trigger(work)
        except Unmergeable:
            for delivery in work[1:]:
                await self._parts.publish(topics.agent_inbox(self._handle), _by_itself(delivery.event))
            _log.warning("partition_worked_singly", seat=self._handle, events=len(work))
            return work[:1]
        return work

    def _trigger(self, work: Sequence[Delivery]) -> Trigger:
        headroom = min(delivery.headroom for delivery in work)
        return trigger_of(self._handle, [delivery.event for delivery in work], self._parts.sources, headroom=headroom)

    async def _past_the_gate(self, trigger: Trigger, epoch: int, spent: Sequence[Event]) -> Outcome:
        if not await self._parts.gate.enter():
            return Defer("this node is draining")
        try:
            # Asked again: the wait at the gate may have been longer than the grant was fresh. A seat that came back
            # under another epoch was somebody else's meanwhile, who has been given this very delivery.
            again = self._granted()
            if isinstance(again, Defer):
                return again
            if again != epoch:
                return Defer(f"seat {self._handle!r} was held elsewhere while its work waited at the gate")
            return await self._turns.work(trigger, epoch=epoch, spent=spent)
        except BaseException:
            if self._journal is not None:
                self._journal.leave_open()
            raise
        finally:
            self._parts.gate.leave()


def _by_itself(event: Event) -> Event:
    """The event as a message of its own, which nothing is merged with; its conversation stays what it is."""
    body = event.data
    assert isinstance(body, ExternalNotification), "nothing else shares a partition"
    return put_back(replace(event, data=msgspec.structs.replace(body, partition_key="")))
