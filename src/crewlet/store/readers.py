"""A few threads that read, each over a connection of its own that cannot write."""

from __future__ import annotations

import asyncio
import queue
import threading
from pathlib import Path

import apsw

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.store.connection import meaning_of, open_reader
from crewlet.store.jobs import Job, Outcome, call_on, tell
from crewlet.store.sql import Connection

__all__ = ["Readers"]

# How many steps of SQLite's machine lie between two looks at the deadline: about a millisecond.
_STEPS_BETWEEN_CHECKS = 50_000


class Readers:
    """The reader threads of one database. ``ended`` is settled, on the loop that made it, when all have stopped."""

    def __init__(self, path: Path, *, clock: Clock, threads: int = limits.STORE_READERS) -> None:
        self._path = path
        self._clock = clock
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._running = threads
        self._threads = [
            threading.Thread(target=self._run, name=f"crewlet-store-reader-{number}", daemon=True)
            for number in range(threads)
        ]

    def start(self) -> None:
        """Begin to serve; each thread opens its connection with its first read."""
        for thread in self._threads:
            thread.start()

    def put(self, job: Job) -> None:
        """Queue a read; the caller bounds how many wait."""
        self._jobs.put(job)

    def stop(self) -> None:
        """Answer what is queued, then stop; ``ended`` is settled then."""
        self._jobs.put(None)

    def _run(self) -> None:
        connection: Connection | None = None
        heard = True
        while heard and (job := self._jobs.get()) is not None:
            outcome = Outcome(job)
            if not job.answer.cancelled():
                try:
                    connection = connection or open_reader(self._path)
                    outcome = Outcome(job, result=self._read(connection, job))
                except Exception as error:  # noqa: BLE001 - the failure of a caller's function is that caller's
                    outcome = Outcome(job, error=meaning_of(error))
            heard = tell(self._loop, [outcome])
        self._jobs.put(None)  # one word ends all the threads: each hands it to the next
        if connection is not None:
            connection.close()
        call_on(self._loop, self._one_ended)

    def _read(self, connection: Connection, job: Job) -> object:
        """The job's result, read from one snapshot within the time that a read may take."""
        until = self._clock.elapsed_s() + limits.STORE_READ_TIMEOUT_S
        connection.set_progress_handler(
            lambda: self._clock.elapsed_s() > until or job.answer.cancelled(), _STEPS_BETWEEN_CHECKS
        )
        connection.execute("BEGIN")
        try:
            return job.work(connection)
        except apsw.InterruptError as error:
            raise Unavailable(f"a read took more than {limits.STORE_READ_TIMEOUT_S:g} s") from error
        finally:
            connection.set_progress_handler(None)
            connection.execute("ROLLBACK")

    def _one_ended(self) -> None:
        self._running -= 1
        if self._running == 0 and not self.ended.done():
            self.ended.set_result(None)
