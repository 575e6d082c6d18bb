"""What each seat is doing, as this node's own events tell it: the live view behind the list of seats."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crewlet.events import Event
from crewlet.events.types import (
    AgentTurnCompleted,
    AgentTurnStarted,
    LlmUnavailable,
    TurnBudgetExhausted,
    TurnGuardBreach,
)

__all__ = ["SeatActivities", "SeatActivity"]

_Told = AgentTurnStarted | AgentTurnCompleted | TurnGuardBreach | LlmUnavailable | TurnBudgetExhausted


@dataclass(frozen=True, slots=True)
class SeatActivity:
    """One seat now. ``provider_down``: no model answered its last turn, and none has since."""

    turn_id: str | None = None
    last_turn_id: str | None = None
    last_error: str | None = None
    provider_down: bool = False

    @property
    def word(self) -> str:
        """``working``, ``stopped`` or ``idle``."""
        if self.turn_id is not None:
            return "working"
        return "stopped" if self.provider_down else "idle"


class SeatActivities:
    """Follows the publishes of this process; register :meth:`listen` with the queue."""

    def __init__(self) -> None:
        self._by_handle: dict[str, SeatActivity] = {}

    def of(self, handle: str) -> SeatActivity:
        """What the seat does."""
        return self._by_handle.get(handle, SeatActivity())

    async def listen(self, topic: str, event: Event) -> None:
        """Take one published event into account."""
        body = event.data
        if isinstance(body, _Told):
            self._by_handle[body.agent_handle] = _after(self.of(body.agent_handle), body)


def _after(now: SeatActivity, body: _Told) -> SeatActivity:
    match body:
        case AgentTurnStarted():
            return replace(now, turn_id=body.turn_id)
        case LlmUnavailable():
            return replace(now, last_error=body.error, provider_down=True)
        case TurnGuardBreach() | TurnBudgetExhausted():
            # Whether a budget stops the seat still is its window's to say, not this event's.
            said = f"{body.kind}: {body.detail}" if isinstance(body, TurnGuardBreach) else body.error
            return replace(now, last_error=said)
        case AgentTurnCompleted():
            # A turn of an earlier tenure may end late: the seat works on what began after it.
            running = None if now.turn_id == body.turn_id else now.turn_id
            ended = replace(now, turn_id=running, last_turn_id=body.turn_id)
            if body.failed:
                return replace(ended, last_error=body.error or body.error_kind or now.last_error)
            if body.stopped or not body.decision:
                return ended  # Stopped, or moved elsewhere: that says nothing of the models.
            return replace(ended, provider_down=False, last_error=None)
