"""The exclusive hold on a store directory, kept while either the engine or its broker lives."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from pathlib import Path
from typing import Final

from crewlet.base import limits
from crewlet.base.errors import StartRefused

__all__ = ["StoreLock"]

_POLL_S: Final = 0.05


class StoreLock:
    """An flock whose descriptor the broker inherits: the kernel frees it when the last of the two processes ends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / "crewlet.lock"
        self._fd = -1

    @property
    def fd(self) -> int:
        """The descriptor to hand to the broker; -1 while not held."""
        return self._fd

    async def acquire(self, wait_s: float = limits.STORE_DIR_LOCK_WAIT_S) -> None:
        """Hold the directory. Raises ``StartRefused``, naming the holders when they stay for ``wait_s``."""
        self._fd = self._open()
        deadline = asyncio.get_running_loop().time() + wait_s
        try:
            while not _locked(self._fd):
                if asyncio.get_running_loop().time() >= deadline:
                    raise self._held_by_others()
                await asyncio.sleep(_POLL_S)
        except BaseException:
            self.release()
            raise
        self.name_holders(broker_pid=0)

    def name_holders(self, *, broker_pid: int) -> None:
        """Write who holds the directory into the lock file, for whoever finds it held."""
        holders = json.dumps({"engine": os.getpid(), "broker": broker_pid}).encode()
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, holders, 0)

    def release(self) -> None:
        """Close this process's descriptor; a broker that still runs goes on holding its own."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _open(self) -> int:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartRefused(
                f"cannot write to the store directory {self._directory}: {error.strerror}",
                "make it writable or name another in stream.store_dir",
            ) from error

    def _held_by_others(self) -> StartRefused:
        try:
            holders = json.loads(self._path.read_text() or "{}")
            who = f"the engine with pid {holders['engine']} and its broker with pid {holders['broker']}"
        except (OSError, ValueError, LookupError, TypeError):
            who = "processes that have not written their pids"
        return StartRefused(
            f"the store directory {self._directory} is held by {who}",
            "stop that engine, or name another directory in stream.store_dir",
        )


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
