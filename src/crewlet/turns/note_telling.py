"""The event that says what became of a person's note."""

from __future__ import annotations

from crewlet.events.types import AgentTurnSteered
from crewlet.inbox import Note, note_word
from crewlet.turns.phase_plan import PhasePlan
from crewlet.turns.turn_events import TurnEvents

__all__ = ["tell_note"]


async def tell_note(events: TurnEvents, note: Note, plan: PhasePlan | None = None, round_num: int = 0) -> None:
    """Say which round read it first; without a plan, that the turn ended before one did (E-133). Said once a note."""
    await events.tell(
        AgentTurnSteered(
            **events.of_turn,
            outcome="expired" if plan is None else "delivered",
            note=note.text,
            note_id=note.note_id,
            steered_by=note.by,
            steered_by_seat=note.by_seat,
            sent_at=note.sent_at,
            phase="" if plan is None else plan.phase,
            iteration=0 if plan is None else plan.iteration,
            round=round_num,
        ),
        once=note_word(note.note_id),
    )
