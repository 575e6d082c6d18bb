"""The one thread that writes: it owns the file and the write connection, and commits what queues up together."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import apsw
import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.store.connection import meaning_of, open_writer
from crewlet.store.jobs import Job, Outcome, call_on, tell
from crewlet.store.lock import OwnerLock
from crewlet.store.migrations import migrate
from crewlet.store.sql import Connection

__all__ = ["Writer", "commit_together"]

_log = structlog.get_logger(__name__)


class Writer:
    """The writer thread of one database. ``opened`` and ``ended`` are settled on the loop that made it."""

    def __init__(self, path: Path, *, migrations: Sequence[str], clock: Clock, scratch: bool = False) -> None:
        self._path = path
        self._scratch = scratch
        self._migrations = migrations
        self._clock = clock
        self._lock = OwnerLock(path)
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._stopping = False
        self._loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        # A daemon: a write that hangs must not keep the process alive, and what was acknowledged is in the file.
        self._thread = threading.Thread(target=self._run, name="crewlet-store-writer", daemon=True)

    def start(self) -> None:
        """Take the lock, open the file and migrate it, on the thread; ``opened`` says how that went."""
        self._thread.start()

    def put(self, job: Job) -> None:
        """Queue a write; the caller bounds how many wait."""
        self._jobs.put(job)

    def stop(self) -> None:
        """Commit what is queued, close the file, release the lock; ``ended`` is settled then."""
        self._jobs.put(None)

    def _run(self) -> None:
        try:
            try:
                self._own_and_serve()
            finally:
                # Before anybody is told: whoever hears that this failed may try again at once.
                self._lock.release()
        except Exception as error:  # noqa: BLE001 - this thread's supervisor: told to the opener, or logged
            if not call_on(self._loop, self._failed, error):
                _log.error("store_writer_failed", path=str(self._path), error=repr(error))
        finally:
            call_on(self._loop, self._end)

    def _own_and_serve(self) -> None:
        self._lock.take()
        if self._scratch:
            _emptied(self._path)
        connection = open_writer(self._path)
        try:
            migrate(connection, self._migrations)
            call_on(self._loop, _succeed, self.opened)
            self._serve(connection)
        finally:
            connection.close()

    def _failed(self, error: Exception) -> None:
        if self.opened.done():
            _log.error("store_writer_failed", path=str(self._path), error=repr(error))
        else:
            self.opened.set_exception(meaning_of(error))

    def _end(self) -> None:
        left: list[Outcome] = []
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is not None:
                left.append(Outcome(job, error=Unavailable("the node's database is closed")))
        tell(self._loop, left)
        _succeed(self.ended)

    def _serve(self, connection: Connection) -> None:
        heard = True
        while not self._stopping and (heard or not self._jobs.empty()):
            first = self._jobs.get()
            if first is None:
                return
            heard = tell(self._loop, commit_together(connection, first, self._more()))

    def _more(self) -> Iterator[Job]:
        """What is queued by now, and what still arrives while the group is written, for a bounded time."""
        until = self._clock.elapsed_s() + limits.EVENT_COMMIT_WAIT_S
        while not self._jobs.empty() and self._clock.elapsed_s() < until:
            job = self._jobs.get()
            if job is None:
                self._stopping = True
                return
            yield job


def commit_together(connection: Connection, first: Job, more: Iterator[Job]) -> list[Outcome]:
    """Run these jobs in one transaction, each in a savepoint of its own, and commit.

    A job that raises takes back its own changes and no other's. Where the transaction itself fails, every job that
    had succeeded is ``Unavailable``.
    """
    taken: list[Job] = []
    outcomes: list[Outcome] = []
    try:
        connection.execute("BEGIN IMMEDIATE")
        for job in chain((first,), more):
            taken.append(job)
            outcomes.append(_attempt(connection, job))
            if not connection.in_transaction:  # a full disk or a failed write has ended it for all
                break
        connection.execute("COMMIT")
    except apsw.Error as error:
        _log.error("store_commit_failed", error=repr(error), writes=len(taken))
        with suppress(apsw.Error):
            connection.execute("ROLLBACK")
        return _lost(taken or [first], outcomes, error)
    return outcomes


def _attempt(connection: Connection, job: Job) -> Outcome:
    connection.execute("SAVEPOINT job")
    try:
        outcome = Outcome(job, result=job.work(connection))
    except Exception as error:  # noqa: BLE001 - the failure of a caller's function is that caller's
        outcome = Outcome(job, error=meaning_of(error))
        if connection.in_transaction:
            connection.execute("ROLLBACK TO job")
    if connection.in_transaction:
        connection.execute("RELEASE job")
    return outcome


def _lost(taken: list[Job], outcomes: list[Outcome], error: Exception) -> list[Outcome]:
    own = {id(outcome.job): outcome.error for outcome in outcomes}
    return [Outcome(job, error=own.get(id(job)) or _not_committed(error)) for job in taken]


def _not_committed(error: Exception) -> Unavailable:
    return Unavailable(f"the node's database did not commit: {error}")


def _succeed(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def _emptied(path: Path) -> None:
    """No database is at ``path``, nor what SQLite keeps beside one; its lock's file stays. Raises ``StartRefused``."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        try:
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        except OSError as error:
            message = f"{path} cannot be emptied: {error.strerror}"
            raise StartRefused(message, "see store.path and store.scratch") from error
