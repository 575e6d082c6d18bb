"""A watch on the twin's bucket: what stood when it began, then every write that its patterns cover."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from crewlet import topics
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import Change, Record, Revision

__all__ = ["MemoryWatch"]


class MemoryWatch:
    """One watch; ``tell`` and ``end`` are the bucket's side of it."""

    def __init__(self, patterns: Sequence[str], answer: Sequence[Record], position: Revision, *, name: str) -> None:
        self._patterns = patterns
        self._answer = tuple(answer)
        self._position = position
        self._name = name
        self._changes: deque[Change] = deque()
        self._ended = False
        self._stirred = asyncio.Event()

    @property
    def answer(self) -> tuple[Record, ...]:
        """What stood when the watch began."""
        return self._answer

    @property
    def position(self) -> Revision:
        """The newest revision shown."""
        return self._position

    async def next(self) -> Change:
        """The next change."""
        while not self._changes:
            if self._ended:
                raise Unavailable(f"{self._name}: the watch is over")
            self._stirred.clear()
            await self._stirred.wait()
        return self._changes.popleft()

    def tell(self, change: Change) -> None:
        """Somebody wrote."""
        if self._ended:
            return
        self._position = max(self._position, change.revision)
        if any(topics.matches(pattern, change.key) for pattern in self._patterns):
            self._changes.append(change)
        if len(self._changes) > limits.WATCH_BACKLOG_MAX:
            self.end()
        self._stirred.set()

    def end(self) -> None:
        """The link is gone, or the watch was closed; what was not read is lost."""
        self._ended = True
        self._changes.clear()
        self._stirred.set()
