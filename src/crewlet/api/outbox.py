"""What waits to be sent to one socket: bounded, the oldest dropped first, and the loss counted."""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["Outbox"]


class Outbox:
    """A queue of frames that never blocks whoever fills it. One reader."""

    def __init__(self, *, frames_max: int, bytes_max: int) -> None:
        self._frames_max = frames_max
        self._bytes_max = bytes_max
        self._waiting: deque[str] = deque()
        self._size = 0
        self._dropped = 0
        self._closed = False
        self._changed = asyncio.Event()

    def put(self, frame: str) -> None:
        """Queue ``frame``, at the cost of the oldest ones where there is no room; it is always kept itself."""
        if self._closed:
            return
        self._waiting.append(frame)
        self._size += len(frame)
        while len(self._waiting) > 1 and (len(self._waiting) > self._frames_max or self._size > self._bytes_max):
            self._size -= len(self._waiting.popleft())
            self._dropped += 1
        self._changed.set()

    def close(self, last: str = "") -> None:
        """Take no more after ``last``; what waits can still be read."""
        if last:
            self.put(last)
        self._closed = True
        self._changed.set()

    def abandon(self) -> None:
        """Nobody reads any more."""
        self._waiting.clear()
        self._size = 0
        self.close()

    async def take(self) -> tuple[int, str] | None:
        """How many frames were lost before the next one, and that one; ``None`` once closed and empty."""
        while not self._waiting:
            if self._closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        frame = self._waiting.popleft()
        self._size -= len(frame)
        lost, self._dropped = self._dropped, 0
        return lost, frame
