"""One row for each run of a turn, folded from what its starts, phases and completions left in the event log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from crewlet.events import Event, decode
from crewlet.events.types import (
    AgentPhaseCompleted,
    AgentPhaseStarted,
    AgentTurnCompleted,
    AgentTurnStarted,
    TriggerSummary,
    TurnGuardBreach,
)
from crewlet.store.event_rows import from_micros, to_micros
from crewlet.store.sql import Connection

__all__ = ["Phase", "TurnCursor", "TurnRow", "TurnState", "fold_turn", "read_turns"]

TurnState = Literal["running", "parked", "complete"]
"""``running`` also stands for a turn whose process died before it could say how it ended."""


@dataclass(frozen=True, slots=True, order=True)
class TurnCursor:
    """A turn's place in the list: its earliest start, and its id where two started in one microsecond."""

    started_at: datetime
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """One run. ``duration_ms`` sums its segments; the tokens are those of its phases as far as they have ended.

    ``cost_usd`` is ``None`` where it is not known, before the end too.
    """

    turn_id: str
    started_at: datetime
    state: TurnState
    agent_handle: str
    agent_id: str
    role: str
    work_key: str
    conversation_key: str
    trace_id: str
    node: str
    trigger: TriggerSummary | None
    phases: tuple[str, ...]
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float | None
    duration_ms: int
    failed: bool
    stopped: bool
    redelivered: bool
    decision: str
    error: str
    error_kind: str

    @property
    def cursor(self) -> TurnCursor:
        """Its place in the list."""
        return TurnCursor(self.started_at, self.turn_id)


_STARTED: Final = AgentTurnStarted.event_type
_FOLDED: Final = (_STARTED, AgentTurnCompleted.event_type, AgentPhaseStarted.event_type, TurnGuardBreach.event_type)
_PHASE: Final = AgentPhaseCompleted.event_type

_FIRST_STARTS: Final = """
SELECT e.turn_id, e.event_time FROM crewlet_events AS e
WHERE e.event_type = ? AND e.turn_id IS NOT NULL AND (? = '' OR e.agent_handle = ?)
AND (e.event_time, e.turn_id) < (?, ?) AND NOT EXISTS (
    SELECT 1 FROM crewlet_events AS earlier
    WHERE earlier.turn_id = e.turn_id AND earlier.event_type = e.event_type
    AND (earlier.event_time, earlier.id) < (e.event_time, e.id)
)
ORDER BY e.event_time DESC, e.turn_id DESC LIMIT ?
"""
_SMALL_EVENTS: Final = """
SELECT payload FROM crewlet_events WHERE turn_id = ? AND event_type IN (?, ?, ?, ?) ORDER BY event_time, id
"""
# The payload of a phase carries its prompts: what the fold needs of it stands in narrow columns.
_PHASES: Final = """
SELECT phase, model, ifnull(input_tokens, 0), ifnull(output_tokens, 0), ifnull(cache_read_tokens, 0),
    ifnull(cache_write_tokens, 0)
FROM crewlet_events
WHERE turn_id = ? AND event_type = ? ORDER BY event_time, id
"""


@dataclass(frozen=True, slots=True)
class Phase:
    """What an ended phase adds to its turn's row."""

    name: str
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


def read_turns(connection: Connection, seat: str, limit: int, before: TurnCursor | None) -> list[TurnRow]:
    """A page of runs, the latest start first."""
    after_all = (2**63 - 1, "")
    place = after_all if before is None else (to_micros(before.started_at), before.turn_id)
    starts = connection.execute(_FIRST_STARTS, (_STARTED, seat, seat, *place, limit)).fetchall()
    return [_read_turn(connection, *start) for start in starts]


def fold_turn(turn_id: str, started_at: datetime, events: Sequence[Event], ended: Sequence[Phase]) -> TurnRow:
    """The row of one run from its starts, completions, begun phases and guard breaches, oldest first."""
    bodies = [event.data for event in events]
    starts = [body for body in bodies if isinstance(body, AgentTurnStarted)]
    ends = [body for body in bodies if isinstance(body, AgentTurnCompleted)]
    breaches = [body for body in bodies if isinstance(body, TurnGuardBreach)]
    begun = [body.phase for body in bodies if isinstance(body, AgentPhaseStarted)]
    start = starts[0] if starts else AgentTurnStarted(turn_id=turn_id)
    end = ends[-1] if ends else AgentTurnCompleted(turn_id=turn_id)
    breach = breaches[-1] if breaches else None
    return TurnRow(
        turn_id=turn_id,
        started_at=started_at,
        state=_state(bodies),
        agent_handle=start.agent_handle,
        agent_id=start.agent_id,
        role=start.role,
        work_key=start.work_key,
        conversation_key=start.conversation_key,
        trace_id=events[0].trace_id if events else "",
        node=events[0].node if events else "",
        trigger=start.trigger,
        phases=tuple(begun) if len(begun) > len(ended) else tuple(phase.name for phase in ended),
        model=end.execute_model or next((phase.model for phase in ended if phase.model), ""),
        input_tokens=sum(phase.input_tokens for phase in ended),
        output_tokens=sum(phase.output_tokens for phase in ended),
        cache_read_tokens=sum(phase.cache_read_tokens for phase in ended),
        cache_write_tokens=sum(phase.cache_write_tokens for phase in ended),
        cost_usd=end.cost_usd,
        duration_ms=sum(body.duration_ms for body in ends),
        failed=end.failed or breach is not None,
        stopped=end.stopped,
        redelivered=end.redelivered,
        decision=end.decision,
        error=end.error or ("" if breach is None else breach.detail),
        error_kind=end.error_kind or ("" if breach is None else breach.kind),
    )


def _state(bodies: Sequence[object]) -> TurnState:
    """Decided by the last word: a start after a parked end runs again, an end or a breach after it does not."""
    state: TurnState = "running"
    for body in bodies:
        if isinstance(body, AgentTurnStarted):
            state = "running"
        elif isinstance(body, AgentTurnCompleted):
            state = "parked" if body.suspended else "complete"
        elif isinstance(body, TurnGuardBreach):
            state = "complete"
    return state


def _read_turn(connection: Connection, turn_id: str, started: int) -> TurnRow:
    rows = connection.execute(_SMALL_EVENTS, (turn_id, *_FOLDED))
    events = [decode(payload.encode()) for (payload,) in rows]
    phases = [
        Phase(name or "", model or "", *tokens)
        for name, model, *tokens in connection.execute(_PHASES, (turn_id, _PHASE))
    ]
    return fold_turn(turn_id, from_micros(started), events, phases)
