"""What a turn says of itself, on its own trace: telemetry that may be lost, and two records that may not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypedDict, TypeVar

import structlog

from crewlet import topics
from crewlet.base.clock import Clock
from crewlet.base.errors import PayloadTooLarge, Unavailable
from crewlet.base.ids import Ids, TurnId
from crewlet.base.trace import Trace
from crewlet.events import Body, Event, new_event
from crewlet.events.types import ExternalNotification, TriggerSummary
from crewlet.inbox import Trigger, TurnJournal, said_once_id
from crewlet.turns.config import TurnConfig
from crewlet.turns.setup import SeatBrief

__all__ = ["OfTurn", "Publish", "TurnEvents", "trigger_summary"]

_log = structlog.get_logger(__name__)
_B = TypeVar("_B", bound=Body)

Publish = Callable[[str, Event], Awaitable[object]]
"""The queue's ``publish`` or ``publish_live``. Raises ``Unavailable`` and ``PayloadTooLarge``."""


class OfTurn(TypedDict):
    """The fields that every event of a turn carries."""

    turn_id: str
    agent_handle: str
    agent_id: str
    role: str
    work_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEvents:
    """Publishes one turn's events. Each carries the span that emitted it: the turn's, or a phase's below it."""

    publish: Publish
    publish_live: Publish
    clock: Clock
    ids: Ids
    config: TurnConfig
    trigger: Trigger
    turn_id: TurnId
    seat: SeatBrief
    trace: Trace
    of_turn: OfTurn
    journal: TurnJournal

    async def tell(
        self,
        body: _B,
        trace: Trace | None = None,
        *,
        smaller: Callable[[_B], Body] | None = None,
        once: str = "",
    ) -> None:
        """Publish telemetry: a loss is logged and never ends a turn. ``smaller`` cuts a body that is too large.

        ``once`` names what the turn says one time, by whichever process.

        Says nothing while the turn goes through what a predecessor recorded: that was told then.
        """
        if self.journal.replaying:
            return
        event_id = said_once_id(self.turn_id, f"{body.event_type}/{once}") if once else ""
        event = self._event(body, trace, event_id=event_id)
        try:
            await self.publish(topics.event_topic(event.type), event)
        except (Unavailable, PayloadTooLarge) as lost:
            self._lost(event, lost)
            if smaller is not None and isinstance(lost, PayloadTooLarge):
                await self.tell(smaller(body), trace, once=once)

    async def show(self, body: Body, trace: Trace) -> None:
        """Publish what is live only: nobody waits for it, and none is promised it. Else as :meth:`tell`."""
        if self.journal.replaying:
            return
        event = self._event(body, trace)
        try:
            await self.publish_live(topics.event_topic(event.type), event)
        except (Unavailable, PayloadTooLarge) as lost:
            self._lost(event, lost)

    async def record(self, body: Body, *, once: bool = False) -> None:
        """Publish what others wait for, with a few bounded retries under one event id, so it is stored once.

        ``once``: whatever process says it, a turn says it under one id.

        Raises ``Unavailable`` after the last try, ``PayloadTooLarge`` at once.
        """
        event = self._event(body, None, event_id=said_once_id(self.turn_id, body.event_type) if once else "")
        pause_s = self.config.record_backoff_first_s
        for attempt in range(1, self.config.record_attempts_max + 1):
            try:
                await self.publish(topics.event_topic(event.type), event)
            except Unavailable:
                if attempt == self.config.record_attempts_max:
                    raise
                await asyncio.sleep(pause_s)
                pause_s *= 2
            else:
                return

    def _lost(self, event: Event, lost: Unavailable | PayloadTooLarge) -> None:
        _log.warning("phase_telemetry_publish_failed", turn=self.turn_id, type=event.type, error=str(lost))

    def _event(self, body: Body, trace: Trace | None, *, event_id: str = "") -> Event:
        return new_event(
            body,
            trace=trace or self.trace,
            now=self.clock.now(),
            ids=self.ids,
            event_id=event_id,
            source=self.seat.handle,
            delegation_depth=self.trigger.delegation_depth,
            parent_turn_id=self.trigger.told.parent_turn_id,
            delegation_chain=self.trigger.delegation_chain,
        )


def trigger_summary(trigger: Trigger) -> TriggerSummary:
    """What woke the turn, as its events tell it."""
    lead = trigger.lead
    body = lead.data
    notified = isinstance(body, ExternalNotification)
    return TriggerSummary(
        id=lead.id,
        type=lead.type,
        summary=lead.summary,
        actor=lead.actor,
        timestamp=lead.timestamp,
        integration=body.integration if notified else "",
        sender=body.sender if notified else "",
    )
