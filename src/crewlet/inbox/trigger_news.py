"""What a seat's inbox tells of its triggers: those that run no turn, and those that were merged."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid5

import structlog

from crewlet import topics
from crewlet.base.errors import CrewletError
from crewlet.base.trace import Trace, child_of
from crewlet.events import Body, Event, new_event
from crewlet.events.types import (
    AgentTurnCompleted,
    AgentTurnSteered,
    ExternalNotification,
    NotificationsCoalesced,
    TurnChargeUncounted,
    TurnTriggerSkipped,
)
from crewlet.inbox.contract import Decision, Trigger, TurnOutcome
from crewlet.inbox.ports import SeatInboxParts
from crewlet.inbox.recorded_charges import RecordedCharge
from crewlet.inbox.said_once import note_word, said_once_id
from crewlet.inbox.triggers import work_key_of
from crewlet.inbox.turn_journal import Note

__all__ = ["TriggerNews"]

_log = structlog.get_logger(__name__)
_MERGES = UUID("b5a2c9d4-6a0e-5b5f-8a51-3a0f9f0e2d77")
_ENDED_UNRUN = UUID("0d0cbb0e-9a0b-5b57-9c1e-6b7c0a4f51c2")


class TriggerNews:
    """Publishes them. What cannot be told is logged: by then it is decided what becomes of a trigger."""

    def __init__(self, handle: str, parts: SeatInboxParts) -> None:
        self._handle = handle
        self._parts = parts

    async def skipped(
        self, event: Event, reason: str, *, detail: str, turn_id: str = "", abandoned: bool = False
    ) -> None:
        """One trigger runs no turn, or none any more."""
        _log.info("turn_trigger_skipped", seat=self._handle, trigger=event.id, reason=reason)
        await self._tell(
            TurnTriggerSkipped(
                agent_handle=self._handle,
                trigger_id=event.id,
                reason=reason,
                detail=detail,
                turn_id=turn_id,
                work_key=work_key_of([event.id]),
                abandoned=abandoned,
            ),
            event.trace,
        )

    async def given_up(self, events: Sequence[Event], reason: str, *, detail: str, turn_id: str = "") -> None:
        """None of these comes back, and none is worked."""
        for event in events:
            await self.skipped(event, reason, detail=detail, turn_id=turn_id, abandoned=True)

    async def coalesced(self, trigger: Trigger) -> None:
        """Several events are one trigger; told once, however often they come again together (E-105)."""
        if trigger.digest is None or not isinstance(trigger.digest.data, ExternalNotification):
            return
        body = trigger.digest.data
        await self._tell(
            NotificationsCoalesced(
                agent_handle=self._handle,
                integration=body.integration,
                partition_key=body.partition_key,
                work_key=trigger.work_key,
                trigger_ids=tuple(event.id for event in trigger.events),
                senders=tuple(dict.fromkeys(said.sender for said in body.messages if said.sender)),
            ),
            trigger.trace,
            event_id=str(uuid5(_MERGES, trigger.work_key)),
        )

    async def ended_unrun(self, trigger: Trigger, outcome: TurnOutcome, *, comes_back: bool) -> None:
        """A turn that another process began ends, and nobody runs the rest of it; told once, whoever ends it."""
        await self._tell(
            AgentTurnCompleted(
                turn_id=outcome.turn_id,
                agent_handle=self._handle,
                work_key=trigger.work_key,
                conversation_key=trigger.conversation_key,
                decision=str(outcome.decision),
                failed=outcome.decision is Decision.FAILED,
                stopped=outcome.decision is Decision.STOPPED,
                redelivered=comes_back,
                error=outcome.error,
                error_kind=outcome.error_kind,
            ),
            trigger.trace,
            event_id=str(uuid5(_ENDED_UNRUN, outcome.turn_id)),
        )

    async def uncounted(self, trigger: Trigger, turn_id: str, charge: RecordedCharge, error: str) -> None:
        """What a reply cost is in no counter, or nobody can say that it is."""
        await self._tell(
            TurnChargeUncounted(
                turn_id=turn_id,
                agent_handle=self._handle,
                work_key=trigger.work_key,
                lane=charge.lane,
                number=charge.number,
                tokens=charge.usage.total,
                provider_key=charge.provider_key,
                model=charge.model,
                error=error,
            ),
            trigger.trace,
        )

    async def notes_expired(self, trigger: Trigger, turn_id: str, notes: Sequence[Note]) -> None:
        """What a turn was told that nobody runs any further; no news where its process said that a round read it."""
        for note in notes:
            word = f"{AgentTurnSteered.event_type}/{note_word(note.note_id)}"
            await self._tell(
                AgentTurnSteered(
                    turn_id=turn_id,
                    agent_handle=self._handle,
                    work_key=trigger.work_key,
                    outcome="expired",
                    note=note.text,
                    note_id=note.note_id,
                    steered_by=note.by,
                    steered_by_seat=note.by_seat,
                    sent_at=note.sent_at,
                ),
                trigger.trace,
                event_id=said_once_id(turn_id, word),
            )

    async def _tell(self, body: Body, trace: Trace, *, event_id: str = "") -> None:
        parts, below = self._parts, child_of(trace, self._parts.ids)
        event = new_event(
            body, trace=below, now=parts.clock.now(), ids=parts.ids, event_id=event_id, source=self._handle
        )
        try:
            await self._parts.publish(topics.event_topic(event.type), event)
        except CrewletError as error:
            # What becomes of the trigger is decided; a run again, for the sake of this news, would undo that.
            _log.warning(f"{event.type}_lost", seat=self._handle, error=str(error))
