"""One seat's inbox: from a delivery to a finished turn and the outcome that the queue is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import structlog

from crewlet import topics
from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import CrewletError, Fenced, StoppedByPerson, Unavailable
from crewlet.base.fence import Fence, Posture
from crewlet.base.ids import Ids, TurnId
from crewlet.base.trace import child_of
from crewlet.events import Event, new_event
from crewlet.events.types import TurnTriggerSkipped
from crewlet.inbox.contract import Decision, RunTurn, Trigger, TurnOutcome
from crewlet.inbox.triggers import UnreadableTrigger, trigger_of, work_key_of
from crewlet.inbox.turn_journal import NoJournal
from crewlet.inbox.verdict import SPENT, verdict_of
from crewlet.queue import Ack, Defer, Delivery, Nak, Outcome

__all__ = ["Admission", "CompletionLedger", "SeatInbox", "SeatInboxParts", "Settle"]

_log = structlog.get_logger(__name__)

Publish = Callable[[str, Event], Awaitable[Event]]
Settle = Callable[[Trigger, TurnOutcome], Awaitable[None]]
"""Called once a trigger is done with, before it is recorded: hands the artifact to whoever is owed it. Repeatable."""


class Admission(Protocol):
    """Whether a turn of the seat may start here, now."""

    def may_start(self, handle: str) -> int | None:
        """The epoch to run under, or ``None``."""
        ...

    def fence(self, handle: str, epoch: int) -> Fence:
        """The fence of that grant."""
        ...


class CompletionLedger(Protocol):
    """What has been worked already, fleet-wide; fails open both ways."""

    async def worked(self, handle: str, ids: list[str]) -> frozenset[str]:
        """Those of ``ids`` that are recorded."""
        ...

    async def record(self, handle: str, ids: list[str], *, turn_id: str, outcome: str) -> None:
        """Record ``ids`` as worked."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatInboxParts:
    """What a seat's inbox stands on; the gate is the node's, shared by all its seats.

    ``withheld``: why no turn of a seat may start just now, empty where nothing speaks against it.
    """

    admission: Admission
    posture: Posture
    withheld: Callable[[str], str] = lambda _: ""
    ledger: CompletionLedger
    gate: asyncio.Semaphore
    run_turn: RunTurn
    settle: Settle
    publish: Publish
    clock: Clock
    ids: Ids


class SeatInbox:
    """The handler of a seat's inbox subscription. One delivery at a time, acknowledged after its turn."""

    def __init__(self, handle: str, parts: SeatInboxParts) -> None:
        self._handle = handle
        self._parts = parts

    async def handle(self, delivery: Delivery) -> Outcome:
        """Work one delivery.

        Defers when the seat is not (provably) this node's; acknowledges what was worked before or runs no turn; else
        runs the turn and decides by what its record proves. ``Unavailable`` from settling naks: the turn's effects
        are repeatable, its answer is not to be lost. A last delivery that does not end the work is given up aloud,
        since the queue makes a dead letter of it: whoever waits for it must hear so.
        """
        try:
            outcome = await self._work(delivery)
        except Exception as error:
            if delivery.headroom == 0:
                await self._give_up(delivery.event, str(error) or type(error).__name__)
            raise
        if isinstance(outcome, Defer) and delivery.headroom == 0:
            await self._give_up(delivery.event, outcome.reason)
        return outcome

    async def _work(self, delivery: Delivery) -> Outcome:
        event = delivery.event
        trigger = trigger_of(self._handle, event, headroom=delivery.headroom)
        if trigger is None:
            _log.info("inbox_event_dropped", seat=self._handle, type=event.type, event_id=event.id)
            return Ack()
        admitted = self._admission()
        if isinstance(admitted, Defer):
            return admitted
        if await self._parts.ledger.worked(self._handle, [event.id]):
            await self._say_skipped(event, "worked already", detail="the completion ledger has it")
            return Ack()
        async with self._parts.gate:
            return await self._run(trigger, admitted)

    def _admission(self) -> int | Defer:
        """The epoch to run under, or why not here."""
        if not self._parts.posture.admits_work():
            return Defer("this node's configuration is behind the company's")
        if why := self._parts.withheld(self._handle):
            return Defer(why)
        epoch = self._parts.admission.may_start(self._handle)
        return Defer(f"seat {self._handle!r} is not owned here") if epoch is None else epoch

    async def _run(self, trigger: Trigger, admitted: int) -> Outcome:
        # Asked again: the wait for a slot may have been longer than the grant was fresh. A seat that came back under
        # another epoch was somebody else's meanwhile, who has been given this very delivery.
        again = self._admission()
        if isinstance(again, Defer):
            return again
        if again != admitted:
            return Defer(f"seat {self._handle!r} was held elsewhere while its work waited for a slot")
        fence = self._parts.admission.fence(self._handle, admitted)
        try:
            journal = NoJournal(TurnId(str(self._parts.ids.uuid())))
            outcome = await self._parts.run_turn(trigger, fence, journal)
        except StoppedByPerson as stopped:
            outcome = TurnOutcome(turn_id=TurnId(""), decision=Decision.STOPPED, finished=True, error=str(stopped))
        except Fenced as fenced:
            return Defer(str(fenced))
        return await self._conclude(trigger, outcome)

    async def _conclude(self, trigger: Trigger, outcome: TurnOutcome) -> Outcome:
        verdict = verdict_of(outcome, headroom=trigger.headroom)
        if verdict.record or verdict.abandoned:
            await self._settle(trigger, outcome)
        if verdict.abandoned:
            await self._say_skipped(
                trigger.lead, verdict.abandoned, detail=outcome.error, turn_id=outcome.turn_id, abandoned=True
            )
        if not verdict.record:
            return Nak(outcome.error_kind or outcome.error)
        await self._record(trigger, turn_id=outcome.turn_id, outcome=str(outcome.decision))
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

    async def _record(self, trigger: Trigger, *, turn_id: str, outcome: str) -> None:
        ids = [event.id for event in trigger.events]
        await self._parts.ledger.record(self._handle, ids, turn_id=turn_id, outcome=outcome)

    async def _give_up(self, event: Event, detail: str) -> None:
        """Answer whoever asked, and say it. What fails of that is logged: no further delivery would do it better."""
        with suppress(UnreadableTrigger):
            await self._settle_as_failed(trigger_of(self._handle, event, headroom=0), detail)
        await self._say_skipped(event, SPENT, detail=detail, abandoned=True)

    async def _settle_as_failed(self, trigger: Trigger | None, detail: str) -> None:
        if trigger is None:
            return
        failed = TurnOutcome(turn_id=TurnId(""), decision=Decision.FAILED, finished=False, error=detail)
        try:
            await self._parts.settle(trigger, failed)
        except CrewletError as error:
            _log.error("given_up_unanswered", seat=self._handle, trigger=trigger.lead.id, error=str(error))

    async def _say_skipped(
        self, event: Event, reason: str, *, detail: str, turn_id: str = "", abandoned: bool = False
    ) -> None:
        _log.info("turn_trigger_skipped", seat=self._handle, trigger=event.id, reason=reason)
        skipped = new_event(
            TurnTriggerSkipped(
                agent_handle=self._handle,
                trigger_id=event.id,
                reason=reason,
                detail=detail,
                turn_id=turn_id,
                work_key=work_key_of([event.id]),
                abandoned=abandoned,
            ),
            trace=child_of(event.trace, self._parts.ids),
            now=self._parts.clock.now(),
            ids=self._parts.ids,
            source=self._handle,
        )
        try:
            await self._parts.publish(topics.event_topic(skipped.type), skipped)
        except CrewletError as error:
            # What becomes of the trigger is decided; a run again, for the sake of this news, would undo that.
            _log.warning("turn_trigger_skipped_lost", seat=self._handle, trigger=event.id, error=str(error))
