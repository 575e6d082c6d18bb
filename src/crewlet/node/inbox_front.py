"""What a seat does before anything that its inbox brings: work that a predecessor left half done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from crewlet.base import limits
from crewlet.base.errors import CrewletError, Unavailable

__all__ = ["FrontWork", "InboxFront"]

_log = structlog.get_logger(__name__)

FrontWork = Callable[[], Awaitable[None]]
"""One piece of work; done again where it raises ``Unavailable``, and what becomes of it else is its own affair."""


class InboxFront:
    """Pieces of work in the order in which they were put; closed with the seat's tenure, begun or not."""

    def __init__(self) -> None:
        self._waiting: list[FrontWork] = []
        self._stirred = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = asyncio.Event()

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
        self._closing.set()
        self._stirred.set()

    async def wait_idle(self) -> None:
        """Return once nothing of it runs."""
        await self._idle.wait()

    async def work(self, handle: str, may_begin: Callable[[], bool]) -> None:
        """Do the pieces one after another, each as soon as ``may_begin``; return when all are done, or at the close.

        It is asked again whenever somebody stirs. A piece that is ``Unavailable`` is done again after a while, so long
        as this is open: nothing of it runs meanwhile, and nobody waits for it. Another ``CrewletError`` of one piece
        is logged and costs no other.
        """
        pause_s = limits.JOURNAL_RETRY_FIRST_S
        while self._waiting and await self._until(may_begin):
            self._idle.clear()
            try:
                await self._waiting[0]()
            except Unavailable as error:
                _log.warning("seat_front_work_waits", seat=handle, error=str(error))
                self._idle.set()
                await self._closed_within(pause_s)
                pause_s = min(2 * pause_s, limits.JOURNAL_RETRY_MAX_S)
                continue
            except CrewletError as error:
                _log.warning("seat_front_work_failed", seat=handle, error=str(error))
            finally:
                self._idle.set()
            self._waiting.pop(0)
            pause_s = limits.JOURNAL_RETRY_FIRST_S

    async def _closed_within(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()

    async def _until(self, may_begin: Callable[[], bool]) -> bool:
        while not self._closing.is_set():
            self._stirred.clear()
            if may_begin():
                return True
            await self._stirred.wait()
        return False
