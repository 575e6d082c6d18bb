"""What broker and journal kept in a run, looked at as it is stored: triggers, ends, skips, and recorded replies."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from crewlet import topics
from crewlet.backends.memory import MemoryBroker, MemoryLogStream
from crewlet.backends.memory.log import Piece
from crewlet.backends.memory.queue_mail import Burial
from crewlet.base.clock import Clock
from crewlet.events import Event, decode
from crewlet.events.types import AgentTurnCompleted, AgentTurnSteered, TurnTriggerSkipped
from crewlet.inbox.journal_entries import Ended, Opened, Replied, Resumed, decode_entry
from crewlet.testing.turn_simulation.plan import HANDLES
from crewlet.testing.turn_simulation.rules import Findings

__all__ = ["KeptReply", "WatchedBroker", "WatchedLog"]

_INBOXES: Final = {topics.agent_inbox(handle): handle for handle in HANDLES}
_ENDED: Final = topics.event_topic(AgentTurnCompleted.event_type)
_SKIPPED: Final = topics.event_topic(TurnTriggerSkipped.event_type)
_STEERED: Final = topics.event_topic(AgentTurnSteered.event_type)


class WatchedBroker(MemoryBroker):
    """``triggers`` are those that reached an inbox, by seat and id; ``completed`` and ``skipped`` what was told.

    ``steered`` are the ids of the events that say what became of a note.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.triggers: dict[tuple[str, str], Event] = {}
        self.completed: dict[str, AgentTurnCompleted] = {}
        self.steered: defaultdict[str, set[str]] = defaultdict(set[str])
        self.skipped: defaultdict[tuple[str, str], list[TurnTriggerSkipped]] = defaultdict(list[TurnTriggerSkipped])

    def store(self, topic: str, payload: bytes, *, message_id: str = "", burial: Burial | None = None) -> None:
        """Store it, and look at it."""
        super().store(topic, payload, message_id=message_id, burial=burial)
        if topic in _INBOXES:
            event = decode(payload)
            self.triggers.setdefault((_INBOXES[topic], event.id), event)
        elif topic in (_ENDED, _SKIPPED, _STEERED):
            event = decode(payload)
            body = event.data
            if isinstance(body, AgentTurnCompleted):
                self.completed[body.turn_id] = body
            elif isinstance(body, TurnTriggerSkipped):
                self.skipped[body.agent_handle, body.trigger_id].append(body)
            elif isinstance(body, AgentTurnSteered):
                self.steered[body.note_id].add(event.id)


@dataclass(frozen=True, slots=True)
class KeptReply:
    """A reply on record: whose, and what it cost."""

    handle: str
    tokens: int


class WatchedLog(MemoryLogStream):
    """``replies`` by turn and number; ``resumed`` counts the take-overs that found a turn open."""

    def __init__(self, clock: Clock, findings: Findings) -> None:
        super().__init__(clock)
        self._findings = findings
        self._open: dict[str, str] = {}
        self.replies: dict[tuple[str, int], KeptReply] = {}
        self.resumed: defaultdict[str, int] = defaultdict(int)

    def put(self, seat: str, piece: Piece, expected: int) -> int:
        """Store it, and look at it. Raises ``Superseded``, ``LogFull``."""
        sequence = super().put(seat, piece, expected)
        for record in piece.records:
            self._look_at(seat, record.payload)
        return sequence

    def _look_at(self, seat: str, payload: bytes) -> None:
        match decode_entry(payload):
            case Opened(turn_id=turn_id):
                self._open[seat] = turn_id
            case Ended():
                self._open.pop(seat, None)
            case Resumed() if seat in self._open:
                self.resumed[self._open[seat]] += 1
            case Replied(number=number, reply=reply) if seat in self._open:
                turn_id = self._open[seat]
                kept = KeptReply(seat, reply.input_tokens + reply.output_tokens)
                if self.replies.setdefault((turn_id, number), kept) != kept:
                    self._findings.add("counters", f"turn {turn_id} has two replies of number {number}")
            case _:
                pass
