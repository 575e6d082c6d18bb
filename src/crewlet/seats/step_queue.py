"""Steps that never overlap: each begins when every one before it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from crewlet.base.tasks import Tasks

__all__ = ["StepQueue"]


class StepQueue:
    """One seat's steps, as tasks of ``tasks``; ``name`` is what they are called after."""

    def __init__(self, tasks: Tasks, name: str) -> None:
        self._tasks = tasks
        self._name = name
        self._last: asyncio.Task[None] | None = None

    @property
    def is_done(self) -> bool:
        """Whether every step that was begun is done."""
        return self._last is None or self._last.done()

    def begin(self, step: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do ``work`` once every step before it is done."""
        before = self._last

        async def in_turn() -> None:
            if before is not None and not before.done():
                await asyncio.wait((before,))
            await work()

        self._last = self._tasks.start(f"{step} {self._name}", in_turn())

    async def settled(self) -> None:
        """Return once every step begun so far is done."""
        if self._last is not None:
            await asyncio.wait((self._last,))
