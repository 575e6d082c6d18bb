"""What people tell a turn while it runs (steering): told once, read at the next round, known to every later phase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crewlet.base import limits
from crewlet.inbox import Note

__all__ = ["NoteBox"]


class NoteBox:
    """The notes to one running turn: those that wait, and those that a round has read."""

    def __init__(self) -> None:
        self._unread: list[Note] = []
        self._read: list[Note] = []
        self._closed = False

    def post(self, note: Note) -> bool:
        """Have ``note`` read at the next round; the same note again changes nothing. False where no more may wait."""
        if self._closed:
            return False
        if any(each.note_id == note.note_id for each in (*self._unread, *self._read)):
            return True
        if len(self._unread) >= limits.STEER_UNREAD_MAX:
            return False
        self._unread.append(note)
        return True

    def take(self) -> Sequence[Note]:
        """Those that wait; they count as read from now on."""
        taken, self._unread = self._unread, []
        self._read += taken
        return taken

    def read_before(self) -> Sequence[Note]:
        """Those that an earlier round of the turn has read."""
        return tuple(self._read)

    def restore(self, notes: Iterable[Note]) -> None:
        """Count as read what a predecessor's round has read."""
        known = {each.note_id for each in self._read}
        self._read += [note for note in notes if note.note_id not in known]

    def close(self) -> Sequence[Note]:
        """Take no more; returns what nobody read, once."""
        self._closed = True
        unread, self._unread = self._unread, []
        return unread
