"""The thread around the message that woke a turn: read once, after the turn has told its start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from crewlet.notify import ThreadBlock

__all__ = ["ThreadShown"]


class ThreadShown:
    """What a turn is shown of its thread; nothing until it is read."""

    def __init__(
        self, read: Callable[[], Awaitable[ThreadBlock | None]] | None, block: ThreadBlock | None = None
    ) -> None:
        self._read = read
        self.block = block

    @classmethod
    def of(cls, block: ThreadBlock | None) -> ThreadShown:
        """A thread as it was read before."""
        return cls(None, block)

    async def read(self) -> None:
        """Read it, unless it was. What the thread's reader fails with is for whoever made this to keep from here."""
        read, self._read = self._read, None
        if read is not None:
            self.block = await read()
