"""A process stopped at one of its requests to the stores: before it was sent, or when it has landed unheard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import Any, TypeVar, cast

from crewlet.base.errors import Unavailable
from crewlet.base.tasks import Tasks
from crewlet.coordination import Record, RecordStore, Revision

__all__ = ["Steps"]

_T = TypeVar("_T")


class Steps:
    """Counts the sides of requests, two each, and holds the process at number ``stop_at`` for ever; 0 never.

    ``dies``: from then on it reaches nothing any more, as a process that was killed. ``before_write`` is told of each
    write before it is made: the store's name, and its number among the store's.
    """

    def __init__(
        self,
        stop_at: int = 0,
        *,
        dies: bool = False,
        before_write: Callable[[str, int], None] = lambda _name, _number: None,
    ) -> None:
        self.before_write = before_write
        self._stop_at = stop_at
        self._dies = dies
        self._passed = 0
        self._stopped = asyncio.Event()
        self._tasks = Tasks("steps")

    @property
    def is_stopped(self) -> bool:
        """Whether it came that far."""
        return self._stopped.is_set()

    def stop_in(self, sides: int) -> None:
        """Stop so many sides from now, once more if it was stopped before."""
        self._stop_at = self._passed + sides
        self._stopped = asyncio.Event()

    def stop_never(self) -> None:
        """Go on, unless it is dead."""
        if not (self._dies and self.is_stopped):
            self.stop_in(0)

    def die_in(self, sides: int) -> None:
        """As :meth:`stop_in`, and for good."""
        self._dies = True
        self.stop_in(sides)

    def stepping(self, store: RecordStore) -> RecordStore:
        """``store``, as the process reaches it."""
        return cast("RecordStore", _SteppedStore(store, self))

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """``work`` up to where it is stopped, and given up there; its result where it never was."""
        task: asyncio.Task[_T] = self._tasks.start("work", work)
        stopped = self._tasks.start("stopped", self._stopped.wait())
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not self.is_stopped:
            return await task
        if not self._dies:
            task.cancel()
            await asyncio.wait({task})
        return None

    def end(self) -> None:
        """Cancel what is still held; :meth:`close` waits for it."""
        self._tasks.cancel()

    async def close(self) -> None:
        """Nothing is held any more."""
        await self._tasks.close()

    async def request(self, work: Awaitable[_T]) -> _T:
        """One request: stopped before it, after it, or neither."""
        try:
            await self._pass()
        except BaseException:
            if asyncio.iscoroutine(work):
                work.close()
            raise
        answer = await work
        await self._pass()
        return answer

    async def _pass(self) -> None:
        if self._dies and self.is_stopped:
            raise Unavailable("this process is dead")
        self._passed += 1
        if self._passed == self._stop_at:
            self._stopped.set()
            await asyncio.Event().wait()


class _SteppedStore:
    """A store whose requests are counted; watches and what asks nothing pass."""

    def __init__(self, store: RecordStore, steps: Steps) -> None:
        self._store = store
        self._steps = steps
        self._written = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the store's verb, whatever it is
        return getattr(self._store, name)

    async def get(self, key: str) -> Record | None:
        return await self._steps.request(self._store.get(key))

    async def create(self, key: str, value: bytes) -> Record:
        return await self._write(self._store.create(key, value))

    async def update(self, key: str, value: bytes, *, expected: Revision) -> Record:
        return await self._write(self._store.update(key, value, expected=expected))

    async def delete(self, key: str, *, expected: Revision) -> None:
        await self._write(self._store.delete(key, expected=expected))

    async def list(self, pattern: str) -> list[Record]:
        return await self._steps.request(self._store.list(pattern))

    async def last_revision(self) -> Revision:
        return await self._steps.request(self._store.last_revision())

    async def purge_markers(self, *, before: datetime) -> int:
        return await self._steps.request(self._store.purge_markers(before=before))

    async def _write(self, work: Awaitable[_T]) -> _T:
        self._written += 1
        self._steps.before_write(self._store.name, self._written)
        return await self._steps.request(work)
