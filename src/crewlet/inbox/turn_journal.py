"""What a turn writes down before it acts, so that another process can go on with it, and what it reads back then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from crewlet.base.ids import TurnId
from crewlet.llm import Message, ModelReply, ToolCall
from crewlet.tools import ToolResult

__all__ = ["CallAt", "NoJournal", "Note", "Opening", "RecordedReply", "TurnJournal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What is fixed when a turn begins: its prompts by phase, and the revision of the company's document.

    ``owes`` is the surface that a tool has to carry its answer to, ``onboarding`` the place in the company (its chain
    hash) that its seat is onboarded at before its work; empty where no onboarding was due.
    """

    prompts: Mapping[str, str] = field(default_factory=dict[str, str])
    revision: str = ""
    owes: str = ""
    onboarding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What somebody told the turn while it ran; ``note_id`` is the id of the request that brought it."""

    note_id: str
    text: str
    by: str
    by_seat: str = ""
    sent_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedReply:
    """A model's reply that a predecessor recorded.

    ``shown`` is what the model was shown since the reply before it, to the letter. ``number`` counts the replies of
    the whole turn, from 1. ``is_last``: no later reply is recorded, so its charge may not have been completed.
    ``notes`` are those that its round was the first to read.
    """

    reply: ModelReply
    shown: tuple[Message, ...]
    number: int
    is_last: bool
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class CallAt:
    """One call's place in a turn: its phase's path, the round of the reply that asked for it, its index there."""

    phase: str
    round_num: int
    index: int


class TurnJournal(Protocol):
    """One turn's journal, held by the process that runs the turn.

    What is written is durable when a call returns; each may take as long as ``limits.JOURNAL_APPEND_S``. Every writing
    call raises ``Fenced`` once somebody else has the seat, ``Unavailable`` where the journal cannot be written. A
    phase's path names it within the turn: ``execute/1``, ``review/1``, ``execute/1/delegate/0/find-sources``.
    """

    @property
    def turn_id(self) -> TurnId:
        """The turn's id, the same for each process that runs a part of it."""
        ...

    @property
    def resumed(self) -> bool:
        """Whether a predecessor opened this turn."""
        ...

    @property
    def replaying(self) -> bool:
        """Whether the turn is still going through what a predecessor recorded; nothing is said twice meanwhile."""
        ...

    @property
    def reached_outside(self) -> bool:
        """Whether a call of a predecessor's has reached outside, or may have (S1, "A turn that broke halfway")."""
        ...

    @property
    def notes_left(self) -> tuple[Note, ...]:
        """What a predecessor's turn was told and no recorded reply has answered: the next round shows it."""
        ...

    async def open(self, opening: Opening) -> Opening:
        """Record the turn's opening and return it; of a resumed turn, return what was recorded."""
        ...

    def reply_at(self, phase: str, round_num: int) -> RecordedReply | None:
        """The recorded reply of a round, if there is one."""
        ...

    def replay(self, phase: str, round_num: int) -> RecordedReply | None:
        """The recorded reply of a round, which counts as gone through now; ``None`` where the model is to be asked."""
        ...

    async def replied(
        self, phase: str, round_num: int, shown: tuple[Message, ...], reply: ModelReply, notes: tuple[Note, ...] = ()
    ) -> int:
        """Record a reply with all that the model was shown since the last one, before its charge and its calls.

        Returns its number over the whole turn.
        """
        ...

    def charged(self, phase: str, number: int) -> None:
        """The reply ``number`` of a phase is counted, whatever the budgets said to it."""
        ...

    async def noted(self, note: Note) -> bool:
        """Record what somebody tells the turn, before he hears that it is taken.

        Returns whether it is on record, so that whoever goes on with the turn shows it. Before the turn is opened
        nothing can be: then it waits for that. Once the turn ends it is ``Unavailable``.
        """
        ...

    def passed(self, at: CallAt) -> bool:
        """Whether the record goes on behind this call's round: what of it was to be made has been made."""
        ...

    def was_intended(self, at: CallAt) -> bool:
        """Whether a predecessor recorded that it was about to make this call."""
        ...

    def outcome_at(self, at: CallAt) -> ToolResult | None:
        """What a call that reaches outside came to, where that is recorded."""
        ...

    async def intend(self, at: CallAt, call: ToolCall) -> None:
        """Record that a call that reaches outside is about to be made."""
        ...

    async def came_out(self, at: CallAt, result: ToolResult) -> None:
        """Record what it came to."""
        ...


class NoJournal:
    """A turn that leaves nothing behind; a process that dies in it loses it."""

    def __init__(self, turn_id: TurnId) -> None:
        self._turn_id = turn_id
        self._replies = 0

    @property
    def turn_id(self) -> TurnId:
        """As given."""
        return self._turn_id

    @property
    def resumed(self) -> bool:
        """Never."""
        return False

    @property
    def replaying(self) -> bool:
        """Never."""
        return False

    @property
    def reached_outside(self) -> bool:
        """Never."""
        return False

    @property
    def notes_left(self) -> tuple[Note, ...]:
        """None."""
        return ()

    async def open(self, opening: Opening) -> Opening:
        """As given."""
        return opening

    def reply_at(self, phase: str, round_num: int) -> RecordedReply | None:
        """Nothing."""
        return None

    def replay(self, phase: str, round_num: int) -> RecordedReply | None:
        """Nothing."""
        return None

    async def replied(
        self,
        phase: str,
        round_num: int,
        shown: tuple[Message, ...],
        reply: ModelReply,
        notes: tuple[Note, ...] = (),
    ) -> int:
        """Count it."""
        self._replies += 1
        return self._replies

    def charged(self, phase: str, number: int) -> None:
        """Nothing is kept."""

    async def noted(self, note: Note) -> bool:
        """It is not."""
        return False

    def passed(self, at: CallAt) -> bool:
        """Never."""
        return False

    def was_intended(self, at: CallAt) -> bool:
        """Never."""
        return False

    def outcome_at(self, at: CallAt) -> ToolResult | None:
        """Nothing."""
        return None

    async def intend(self, at: CallAt, call: ToolCall) -> None:
        """Nothing is kept."""

    async def came_out(self, at: CallAt, result: ToolResult) -> None:
        """Nothing is kept."""
