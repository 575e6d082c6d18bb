"""A watch on the twin's bucket: what stood when it began, then every write that its patterns cover."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from crewlet.backends.memory.record_patterns import covering
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.coordination import Change, Record, Revision

__all__ = ["MemoryWatch"]


class MemoryWatch:
    """One watch; ``tell``, ``begin`` and ``end`` are the bucket's side of it. Changes arrive ``delay_s`` late."""

    def __init__(self, patterns: Sequence[str], *, name: str, delay_s: float = 0.0) -> None:
        self._covers = covering(patterns)
        self._name = name
        self._delay_s = delay_s
        self._clock = asyncio.get_running_loop().time
        self._answer: tuple[Record, ...] = ()
        self._held: dict[str, Revision] = {}
        self._is_prompt = False
        self._sleeps = False
        self._position = Revision(0)
        self._under_way: deque[tuple[float, Change]] = deque()
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
        self._arrive()
        return self._position

    async def next(self) -> Change:
        """The next change."""
        while True:
            if self._under_way:
                self._arrive()
            if self._changes:
                return self._changes.popleft()
            if self._ended:
                raise Unavailable(f"{self._name}: the watch is over")
            self._stirred.clear()
            self._sleeps = True
            await self._something()

    def begin(self, answer: Sequence[Record], position: Revision) -> None:
        """The listing is there; what was told meanwhile follows it."""
        self._answer = tuple(answer)
        self._held = {record.key: record.revision for record in answer}
        self._position = max(self._position, position)
        # What is written from now on is newer than anything that was listed.
        self._is_prompt = not self._delay_s

    def tell(self, change: Change) -> None:
        """Somebody wrote."""
        if self._ended:
            return
        if self._is_prompt and not self._under_way:
            self._position = change.revision
            if self._covers(change.key):
                self._changes.append(change)
        else:
            self._under_way.append((self._clock() + self._delay_s, change))
        if len(self._under_way) + len(self._changes) > limits.WATCH_BACKLOG_MAX:
            self.end()
        if self._sleeps:
            self._sleeps = False
            self._stirred.set()

    def end(self) -> None:
        """The link is gone, or the watch was closed; what was not read is lost."""
        self._ended = True
        self._under_way.clear()
        self._changes.clear()
        self._stirred.set()

    def _arrive(self) -> None:
        while self._under_way and self._under_way[0][0] <= self._clock():
            self._take(self._under_way.popleft()[1])

    def _take(self, change: Change) -> None:
        self._position = max(self._position, change.revision)
        if change.revision > self._held.get(change.key, 0) and self._covers(change.key):
            self._changes.append(change)

    async def _something(self) -> None:
        """Return once there was a write, or a change that was under way has arrived."""
        arrives_s = self._under_way[0][0] if self._under_way else None
        if arrives_s is None:
            await self._stirred.wait()
            return
        try:
            async with asyncio.timeout_at(arrives_s):
                await self._stirred.wait()
        except TimeoutError:
            return
