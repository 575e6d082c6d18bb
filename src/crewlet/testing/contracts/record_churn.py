"""Others at work beside a case: writers that never rest while it looks."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from crewlet.base.tasks import Tasks
from crewlet.coordination import Record, RecordStore

__all__ = ["BREATH_S", "Work", "meanwhile", "passing_through", "recreating", "rewriting"]

BREATH_S = 0.001
"""What a case waits between two looks, so that time passes for the others where it is virtual."""

_ROUNDS_A_BREATH = 20
_PASSING = 3

Work = Callable[[], Awaitable[object]]
"""What somebody does again and again."""


@asynccontextmanager
async def meanwhile(*works: Work) -> AsyncGenerator[None]:
    """Do each work again and again while the block runs. What one of them raises is raised at the block's end."""
    tasks, going = Tasks("meanwhile"), True

    async def again(work: Work) -> None:
        rounds = 0
        while going:
            await work()
            rounds += 1
            await asyncio.sleep(0 if rounds % _ROUNDS_A_BREATH else BREATH_S)

    running = [tasks.start("work", again(work)) for work in works]
    try:
        yield
        going = False
        await asyncio.gather(*running)
    finally:
        await tasks.close()


def rewriting(store: RecordStore, key: str) -> Work:
    """Write over the record under ``key``, as a holder that renews does."""

    async def once() -> None:
        record = await store.get(key)
        assert record is not None, f"{key} was there all the time"
        await store.update(key, record.value, expected=record.revision)

    return once


def recreating(store: RecordStore, key: str) -> Work:
    """Remove the record under ``key`` and create it again."""

    async def once() -> None:
        record = await store.get(key) or await store.create(key, b"again")
        await store.delete(key, expected=record.revision)
        await store.create(key, b"again")

    return once


def passing_through(store: RecordStore, prefix: str) -> Work:
    """Remove the oldest of three records, and create one under a key that was never there: each is written once."""
    there: deque[Record] = deque()
    numbers = itertools.count()

    async def once() -> None:
        if len(there) == _PASSING:
            oldest = there.popleft()
            await store.delete(oldest.key, expected=oldest.revision)
        there.append(await store.create(f"{prefix}{next(numbers)}", b"new"))

    return once
