"""Exclusive ownership of a file by one process: an advisory lock beside it, gone with the process that holds it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from crewlet.base.errors import StartRefused

__all__ = ["OwnerLock"]


class OwnerLock:
    """``{path}.lock``, held from :meth:`take` until :meth:`release`; a killed process holds it no longer (C-002)."""

    def __init__(self, path: Path) -> None:
        self._owned = path
        self._lock_file = path.with_name(f"{path.name}.lock")
        self._descriptor: int | None = None

    def take(self) -> None:
        """Hold the lock and write this process's id into it; makes the directory where missing.

        Raises ``StartRefused`` naming the path and who holds it.
        """
        try:
            self._lock_file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _refused(self._owned, error) from error
        try:
            self._hold(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Let go; harmless when repeated. The lock's file stays, since removing it would race with the next holder."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _hold(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            message = f"{self._owned} is open in another process (pid {holder})"
            raise StartRefused(message, "stop that process, or give this one another store.path") from error
        except OSError as error:
            raise _refused(self._owned, error) from error
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise _refused(self._owned, error) from error


def _refused(path: Path, error: OSError) -> StartRefused:
    return StartRefused(f"{path} cannot be locked: {error.strerror}", "check that its directory can be written to")
