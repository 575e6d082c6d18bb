"""What a seat does before anything that its inbox brings: work that a predecessor left half done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from crewlet.base.errors import CrewletError

__all__ = ["FrontWork", "InboxFront"]

_log = structlog.get_logger(__name__)

FrontWork = Callable[[], Awaitable[None]]
"""One piece of work, done once; what becomes of it, a failure included, is its own affair."""


class InboxFront:
    """Pieces of work in the order in which they were put; closed with the seat's tenure, begun or not."""

    def __init__(self) -> None:
        self._waiting: list[FrontWork] = []
        self._stirred = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, work: FrontWork) -> None:
        """Have ``work`` done before the inbox's mail; while the seat is being established, not later."""
        self._waiting.append(work)

    def stir(self) -> None:
        """Something that may let the work begin has changed."""
        self._stirred.set()

    def close(self) -> None:
        """Begin nothing any more; what runs is ended by its fence."""
        self._closed = True
        self._stirred.set()

    async def wait_idle(self) -> None:
        """Return once nothing of it runs."""
        await self._idle.wait()

    async def work(self, handle: str, may_begin: Callable[[], bool]) -> None:
        """Do the pieces one after another, each as soon as ``may_begin``; return when all are done, or at the close.

        It is asked again whenever somebody stirs. A ``CrewletError`` of one piece is logged and costs no other.
        """
        while self._waiting and await self._until(may_begin):
            work = self._waiting.pop(0)
            self._idle.clear()
            try:
                await work()
            except CrewletError as error:
                _log.warning("seat_front_work_failed", seat=handle, error=str(error))
            finally:
                self._idle.set()

    async def _until(self, may_begin: Callable[[], bool]) -> bool:
        while not self._closed:
            self._stirred.clear()
            if may_begin():
                return True
            await self._stirred.wait()
        return False
