"""Supervised background tasks: each has a name and an owner, and none dies unheard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import structlog

__all__ = ["Tasks", "each_at_once", "together"]

_log = structlog.get_logger(__name__)
_T = TypeVar("_T")


async def each_at_once(items: Iterable[_T], work: Callable[[_T], Awaitable[None]], *, at_once: int) -> None:
    """Do ``work`` for every item, at most ``at_once`` together. The first failure cancels the rest and is raised."""
    todo = list(items)
    left = iter(todo)

    async def worker() -> None:
        for item in left:
            await work(item)

    await together(*(worker() for _ in range(min(at_once, len(todo)))))


async def together(*work: Coroutine[Any, Any, Any]) -> None:
    """Do all of it at once, and return or raise when all of it has ended. The first failure cancels the rest.

    A cancellation travels on whatever failed meanwhile, and a failure leaves no trace in the caller's own task. Before
    Python 3.13 a ``TaskGroup`` raises the failure in place of the cancellation, so that a loop which takes failures
    for weather outlives its end; and after a failure a time limit around it cancels where it should time out.
    """
    tasks = [asyncio.get_running_loop().create_task(each) for each in work]
    if not tasks:
        return
    first: set[asyncio.Task[Any]] = set()
    try:
        first, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await _ended(tasks)
    for task in (*first, *tasks):
        task.result()


async def _ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """All of them are cancelled, where they are not done, and waited for, however often the caller is cancelled."""
    for task in tasks:
        task.cancel()
    was_cancelled = False
    while running := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError:
            was_cancelled = True
    for task in tasks:
        if not task.cancelled():
            # Seen, even where it is not the one that is raised.
            task.exception()
    if was_cancelled:
        raise asyncio.CancelledError


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

    def cancel(self) -> None:
        """Cancel what still runs, but for the caller's own task, and wait for nothing."""
        current = asyncio.current_task()
        for task in self._running:
            if task is not current:
                task.cancel()

    async def close(self) -> None:
        """Cancel what still runs and wait until all of it has ended."""
        current = asyncio.current_task()
        # Again and again: what ends may start something of its own while it cleans up.
        while running := [task for task in self._running if task is not current]:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            # From Python 3.13 on, waiting for what has ended already gives the loop no turn: the word of the end, which
            # takes a task out of our set, would never come, and this would spin for ever.
            await asyncio.sleep(0)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        failure = task.exception()
        if failure is not None:
            _log.error("task_failed", task=task.get_name(), error=repr(failure), exc_info=failure)
            if self._on_failure is not None:
                self._on_failure(task.get_name(), failure)
