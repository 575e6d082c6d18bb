"""Rows that the database would not take, kept until it does: a disk that was full for an hour costs no history."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import structlog

from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks
from crewlet.events import Event, encode

__all__ = ["EventBacklog"]

_log = structlog.get_logger(__name__)


class EventBacklog:
    """Events that are owed to the log, bounded in number and bytes; the oldest go first where there are too many.

    They live in memory: what is still owed when the process ends is in the broker's stream alone.
    """

    def __init__(self, write: Callable[[str, Event], Awaitable[object]]) -> None:
        self._write = write
        self._owed: deque[tuple[str, Event, int]] = deque()
        self._bytes = 0
        self._lost = 0
        self._why = ""
        self._closed = False
        self._tasks = Tasks("event_backlog")

    def __len__(self) -> int:
        return len(self._owed)

    @property
    def trouble(self) -> str:
        """What is wrong, in a sentence; empty while nothing is owed."""
        if not self._owed:
            return ""
        lost = f", {self._lost} more are lost" if self._lost else ""
        return f"the event log is behind by {len(self._owed)} events{lost}: {self._why}"

    def keep(self, topic: str, event: Event, error: Unavailable) -> None:
        """Owe one more row, and write it as soon as the database takes it."""
        if self._closed:
            _log.error("event_row_lost", type=event.type, event_id=event.id, error=str(error))
            return
        size = len(encode(event))
        self._owed.append((topic, event, size))
        self._bytes += size
        self._why = str(error)
        while len(self._owed) > limits.EVENT_BACKLOG_MAX or self._bytes > limits.EVENT_BACKLOG_MAX_BYTES:
            self._lost += 1
            self._drop_first()
        if not len(self._tasks):
            _log.error("event_log_behind", error=self._why, consequence="what happens now is shown when it is back")
            self._tasks.start("catch_up", self._catch_up())

    async def close(self) -> None:
        """Try once more to write what is owed, then let it go."""
        self._closed = True
        await self._tasks.close()
        try:
            await self._write_owed()
        except Unavailable as error:
            _log.error("event_rows_lost", count=len(self._owed), error=str(error))

    async def _catch_up(self) -> None:
        pause_s = limits.EVENT_BACKLOG_RETRY_S
        while self._owed:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, limits.EVENT_BACKLOG_RETRY_MAX_S)
            try:
                await self._write_owed()
            except Unavailable as error:
                self._why = str(error)
        _log.warning("event_log_caught_up", lost=self._lost)
        self._lost = 0

    async def _write_owed(self) -> None:
        while self._owed:
            owed = self._owed[0]
            await self._write(owed[0], owed[1])
            # It may have been given up meanwhile, to keep the bound.
            if self._owed and self._owed[0] is owed:
                self._drop_first()

    def _drop_first(self) -> None:
        self._bytes -= self._owed.popleft()[2]
