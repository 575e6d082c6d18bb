"""The node's own database: one SQLite file, owned by one process, written by one thread, read by a few (D9).

An answered write is on the disk: the journal is synced with each commit (``synchronous = FULL``), so neither
``kill -9`` nor a power cut loses it, as long as the disk keeps what it says it has synced. A write that nobody was
answered for may or may not be there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock, SystemClock
from crewlet.base.errors import Unavailable
from crewlet.store.jobs import Job
from crewlet.store.migrations import MIGRATIONS
from crewlet.store.readers import Readers
from crewlet.store.sql import Connection
from crewlet.store.writer import Writer

__all__ = ["Database"]

_T = TypeVar("_T")
_log = structlog.get_logger(__name__)


class Database:
    """One file and the threads that serve it; belongs to the event loop that opened it.

    When that loop is closed without :meth:`close`, the writer ends with the next write it was given, and lets the
    file go. ``scratch``: whatever the file held is gone once it is opened.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        clock: Clock | None = None,
        migrations: Sequence[str] = MIGRATIONS,
        writes_max: int = limits.EVENT_WRITE_QUEUE_MAX,
        scratch: bool = False,
    ) -> None:
        self._path = Path(path).absolute()
        self._clock = clock or SystemClock()
        self._migrations = migrations
        self._scratch = scratch
        self._write_places = asyncio.Semaphore(writes_max)
        self._read_places = asyncio.Semaphore(limits.STORE_READ_QUEUE_MAX)
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._serving = False

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    async def open(self) -> None:
        """Own the file, bring its schema up to date, and serve; once for each ``Database``.

        Raises ``StartRefused`` where another process holds it, it cannot be made or written, it is no database of
        ours, or a newer release has written it (C-002).
        """
        assert self._writer is None
        self._writer = Writer(self._path, migrations=self._migrations, clock=self._clock, scratch=self._scratch)
        self._writer.start()
        try:
            await self._writer.opened
        except asyncio.CancelledError:
            self._writer.stop()
            raise
        self._readers = Readers(self._path, clock=self._clock)
        self._readers.start()
        self._serving = True

    async def close(self) -> None:
        """Commit every write that was queued, answer every read, and let the file go; harmless when repeated."""
        if self._serving:
            self._serving = False
            assert self._readers is not None
            self._readers.stop()
        if self._readers is None or self._writer is None:
            return
        # The writer goes last: the last connection to close folds the journal into the file.
        await self._ended(self._readers.ended)
        self._writer.stop()
        await self._ended(self._writer.ended)

    async def write(self, work: Callable[[Connection], _T]) -> _T:
        """Run ``work`` in the writer thread and return its result once that is committed.

        It runs in a savepoint: what it raises undoes its own changes alone and is raised here. It must neither end
        the transaction nor hand out a cursor. A full queue makes the caller wait; a cancelled caller's write happens
        all the same. Raises ``Unavailable`` where the database is closed or did not commit.
        """
        await self._write_places.acquire()
        if not self._serving or self._writer is None or self._writer.ended.done():
            self._write_places.release()
            raise Unavailable("the node's database is closed")
        job = Job(work, asyncio.get_running_loop().create_future(), self._write_places.release)
        self._writer.put(job)
        return await job.answer

    async def read(self, work: Callable[[Connection], _T]) -> _T:
        """Run ``work`` in a reader thread over one snapshot, with all that was answered before in it.

        Raises ``Unavailable`` where the database is closed, or when the read takes too long.
        """
        await self._read_places.acquire()
        if not self._serving or self._readers is None:
            self._read_places.release()
            raise Unavailable("the node's database is closed")
        job = Job(work, asyncio.get_running_loop().create_future(), self._read_places.release)
        self._readers.put(job)
        return await job.answer

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ended(self, thread: asyncio.Future[None]) -> None:
        done, _ = await asyncio.wait((thread,), timeout=limits.STORE_CLOSE_TIMEOUT_S)
        if not done:
            _log.error("store_close_timed_out", path=str(self._path), waited_s=limits.STORE_CLOSE_TIMEOUT_S)
