"""What a seat's journal says of its last turn: a fold over its entries. Pure (D11)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from crewlet.inbox.journal_entries import CameOut, Ended, Entry, Intended, Noted, Opened, Replied, Resumed, read_reply
from crewlet.inbox.turn_journal import CallAt, Note

__all__ = ["LastTurn", "last_turn_of"]


@dataclass(slots=True)
class LastTurn:
    """One turn as its journal has it.

    ``begins_at`` is the sequence of its opening, and once it has ended of that: all before it may be trimmed.
    ``idle_resumes`` counts the take-overs since its last reply, this process's own included; one that is tried again by
    the same writer, which has survived it, is the same.
    """

    opened: Opened
    begins_at: int
    replies: dict[tuple[str, int], Replied] = field(default_factory=dict[tuple[str, int], Replied])
    intents: dict[CallAt, Intended] = field(default_factory=dict[CallAt, Intended])
    outcomes: dict[CallAt, CameOut] = field(default_factory=dict[CallAt, CameOut])
    noted: dict[str, Note] = field(default_factory=dict[str, Note])
    resumed_by: set[str] = field(default_factory=set[str])
    ended: Ended | None = None

    @property
    def idle_resumes(self) -> int:
        """The take-overs since its last reply."""
        return len(self.resumed_by)

    @property
    def last_number(self) -> int:
        """The number of its last reply, 0 before the first."""
        return max((reply.number for reply in self.replies.values()), default=0)

    @property
    def notes_left(self) -> tuple[Note, ...]:
        """What the turn was told and no reply on record has answered, in the order in which it came."""
        answered = {note.note_id for replied in self.replies.values() for note in replied.notes}
        return tuple(note for note_id, note in self.noted.items() if note_id not in answered)

    @property
    def may_have_reached_outside(self) -> bool:
        """Whether a call that reaches outside succeeded, or may have (S1, "A turn that broke halfway")."""
        if self.intents.keys() - self.outcomes.keys():
            return True
        return any(not each.result.is_error or each.result.unknown for each in self.outcomes.values())

    def require_readable(self) -> None:
        """Raises ``UnreadableEntry`` where a reply is on record that this build cannot give back."""
        for replied in self.replies.values():
            read_reply(replied.reply)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids that are recorded as worked with it."""
        return self.ended.ids if self.ended else ()


def last_turn_of(entries: Iterable[tuple[int, Entry]]) -> LastTurn | None:
    """The last turn that was opened, as far as it got; ``None`` where none is on record.

    An end says all that there is to know without the rest, which is forgotten then. Whatever else has lost its opening
    says nothing.
    """
    turn: LastTurn | None = None
    for sequence, entry in entries:
        if isinstance(entry, Opened):
            turn = LastTurn(entry, sequence)
        elif turn is None:
            if isinstance(entry, Ended):
                turn = LastTurn(Opened(at=entry.at, turn_id=entry.turn_id), sequence, ended=entry)
        elif turn.ended is None:
            _add(turn, entry)
            turn.begins_at = turn.begins_at if turn.ended is None else sequence
    return turn


def _add(turn: LastTurn, entry: Entry) -> None:
    match entry:
        case Resumed():
            turn.resumed_by.add(entry.writer)
        case Replied():
            turn.resumed_by.clear()
            turn.replies[entry.phase, entry.round_num] = entry
        case Noted():
            turn.noted.setdefault(entry.note.note_id, entry.note)
        case Intended():
            turn.intents[CallAt(entry.phase, entry.round_num, entry.index)] = entry
        case CameOut():
            turn.outcomes[CallAt(entry.phase, entry.round_num, entry.index)] = entry
        case Ended():
            turn.ended = entry
        case Opened():
            pass
