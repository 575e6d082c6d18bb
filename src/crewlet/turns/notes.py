"""What people tell a turn while it runs (steering): told once, read at the next round, known to every later phase."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.inbox import Note

__all__ = ["Keep", "NoteBox"]


Keep = Callable[[Note], Awaitable[bool]]
"""Puts a note on record, and says whether whoever goes on with the turn finds it there."""


async def _kept_nowhere(_: Note) -> bool:
    await asyncio.sleep(0)
    return False


class NoteBox:
    """The notes to one running turn: those that wait, and those that a round has read.

    ``keep`` puts each on record before it is taken.
    """

    def __init__(self, keep: Keep = _kept_nowhere) -> None:
        self._keep = keep
        self._unread: list[Note] = []
        self._read: list[Note] = []
        self._coming: set[str] = set()
        self._on_record: set[str] = set()
        self._closed = False

    async def accept(self, note: Note) -> bool:
        """As :meth:`post`, once the note is on record: what is accepted outlives the process.

        Raises what ``keep`` raises, and ``Unavailable`` where the turn ended meanwhile: it may be read all the same.
        """
        if self._closed or self._knows(note):
            return self.post(note)
        if len({*self._coming, *(each.note_id for each in self._unread)} - {note.note_id}) >= limits.STEER_UNREAD_MAX:
            return False
        self._coming.add(note.note_id)
        try:
            if await self._keep(note):
                self._on_record.add(note.note_id)
        finally:
            self._coming.discard(note.note_id)
        if self._closed:
            raise Unavailable(f"the turn ended while the note {note.note_id} was put on record")
        return self.post(note)

    def post(self, note: Note) -> bool:
        """Have ``note`` read at the next round; the same note again changes nothing. False where no more may wait."""
        if self._closed:
            return False
        if self._knows(note):
            return True
        if len(self._unread) >= limits.STEER_UNREAD_MAX:
            return False
        self._unread.append(note)
        return True

    @property
    def is_closed(self) -> bool:
        """Whether it takes no more."""
        return self._closed

    def take(self) -> Sequence[Note]:
        """Those that wait; they count as read from now on."""
        taken, self._unread = self._unread, []
        self._read += taken
        return taken

    def read_before(self) -> Sequence[Note]:
        """Those that an earlier round of the turn has read."""
        return tuple(self._read)

    def wait_again(self, left: Iterable[Note]) -> None:
        """What a predecessor took and no reply on record has answered waits for the next round, before all else."""
        fresh = [note for note in left if not self._knows(note)]
        self._on_record |= {note.note_id for note in fresh}
        self._unread = [*fresh, *self._unread]

    def restore(self, notes: Iterable[Note]) -> None:
        """Count as read what a predecessor's round has read."""
        known = {each.note_id for each in self._read}
        self._read += [note for note in notes if note.note_id not in known]

    def close(self, *, goes_on: bool = False) -> Sequence[Note]:
        """Take no more; returns what nobody read, once. Where the turn ``goes_on`` elsewhere, what is not on record."""
        self._closed = True
        unread, self._unread = self._unread, []
        return [note for note in unread if not (goes_on and note.note_id in self._on_record)]

    def _knows(self, note: Note) -> bool:
        return any(each.note_id == note.note_id for each in (*self._unread, *self._read))
