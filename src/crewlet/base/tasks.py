"""Supervised background tasks: each has a name and an owner, and none dies unheard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

__all__ = ["Tasks"]

_log = structlog.get_logger(__name__)


class Tasks:
    """The tasks of one owner. A task that fails is logged as ``task_failed`` and told to ``on_failure``."""

    def __init__(self, owner: str, on_failure: Callable[[str, BaseException], None] | None = None) -> None:
        self._owner = owner
        self._on_failure = on_failure
        self._running: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run ``work`` in the background under this owner until it ends or :meth:`close`."""
        task = asyncio.get_running_loop().create_task(work, name=f"{self._owner}:{name}")
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Cancel what still runs and wait until all of it has ended."""
        current = asyncio.current_task()
        running = [task for task in self._running if task is not current]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        failure = task.exception()
        if failure is not None:
            _log.error("task_failed", task=task.get_name(), error=repr(failure), exc_info=failure)
            if self._on_failure is not None:
                self._on_failure(task.get_name(), failure)
