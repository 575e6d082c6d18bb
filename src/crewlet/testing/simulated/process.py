"""A process on the simulation's one loop: its tasks can be made to stand still, all at once, and to go on later.

What a stopped process waits for may well happen meanwhile, as it does for one that was sent SIGSTOP; it only learns of
it when it wakes, with every timer that went off in between behind it.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from crewlet.base.tasks import Tasks

__all__ = ["SimulatedProcess", "current_process", "in_processes"]

_T = TypeVar("_T")
_CURRENT: ContextVar[SimulatedProcess | None] = ContextVar("simulated_process", default=None)


def current_process() -> SimulatedProcess | None:
    """The process that the running code belongs to, or ``None`` for the world around them."""
    return _CURRENT.get()


def in_processes(loop: asyncio.AbstractEventLoop) -> None:
    """From now on each task of ``loop`` belongs to the process that started it, and stands still with it."""

    def made(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **how: Any) -> asyncio.Task[Any]:  # noqa: ANN401 - the loop's own
        context = how.get("context")
        process = _CURRENT.get() if context is None else context.get(_CURRENT)
        if process is None:
            return asyncio.Task(work, loop=loop, **how)
        return process.adopted(asyncio.Task(process.stepping(work), loop=loop, **how), work)

    loop.set_task_factory(made)  # pyright: ignore[reportArgumentType] - generic in what a task returns


class SimulatedProcess:
    """One process, by the name under which it owns its leases."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.stands_still = False
        self.stopped_at_s = 0.0
        """When it last stopped, on the loop's clock."""
        self._waiting: list[asyncio.Future[None]] = []
        self._begun = Tasks(owner)
        self._tasks: set[asyncio.Task[Any]] = set()

    def run(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Do ``work`` as this process."""
        context = copy_context()
        context.run(_CURRENT.set, self)
        return context.run(self._begun.start, "run", work)

    def act(self, call: Callable[[], None]) -> None:
        """Call ``call`` as this process, which must be awake: what it starts belongs to it."""
        context = copy_context()
        context.run(_CURRENT.set, self)
        context.run(call)

    def stop(self) -> None:
        """Nothing of it takes another step."""
        self.stands_still = True
        self.stopped_at_s = asyncio.get_running_loop().time()

    def wake(self) -> None:
        """Everything goes on where it stood."""
        self.stands_still = False
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def end(self) -> None:
        """Cancel whatever is left of it and wait for that."""
        self.wake()
        while left := [task for task in self._tasks if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left)

    def adopted(self, task: asyncio.Task[Any], work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """``task``, which does ``work``, is one of this process."""

        def over(ended: asyncio.Task[Any]) -> None:
            self._tasks.discard(ended)
            # One that is cancelled before its first step never came to its work.
            work.close()

        self._tasks.add(task)
        task.add_done_callback(over)
        return task

    async def stepping(self, work: Coroutine[Any, Any, _T]) -> _T:
        """``work``, whose every step waits for the process to be awake."""
        return await self._stepped(work)

    @types.coroutine
    def _stepped(self, work: Coroutine[Any, Any, _T]) -> Generator[Any, None, _T]:
        thrown: BaseException | None = None
        while True:
            while self.stands_still:
                try:
                    yield from self._awake()
                except BaseException as interrupted:  # noqa: BLE001 - whatever it is, it is kept for the next step
                    thrown = interrupted
            try:
                awaited = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as over:
                return over.value
            thrown = None
            try:
                yield awaited
            except BaseException as raised:  # noqa: BLE001 - handed on in the next step
                thrown = raised

    def _awake(self) -> asyncio.Future[None]:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return waiting
