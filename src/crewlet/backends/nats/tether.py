"""Runs as a script of its own between the engine and a child: ties the child's life to the engine's, then becomes it.

``python -I -S tether.py ENGINE_PID WATCH_FD PROGRAM ARGUMENT…``. With a ``WATCH_FD`` of -1 the kernel is asked to kill
the program when the thread that started it ends, which is only right when that was the engine's main thread. Otherwise
``WATCH_FD`` is the reading end of a pipe whose other end the engine holds: a small watcher process waits on it and
kills the program when it breaks. A byte on the pipe tells the watcher to go, since the program has ended by itself.
"""

from __future__ import annotations

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_ENGINE_GONE = 70
_FD_MAX = 65536
PASSED_ON = (
    *("GODEBUG", "GOMAXPROCS", "GOMEMLIMIT", "HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ"),
    # What the broker's configuration refers to, set for it by the engine.
    *("BROKER_CLUSTER_ROUTES", "BROKER_CLUSTER_SECRET", "BROKER_LEAF_REMOTES", "BROKER_LEAF_SECRET"),
)
_OWNER_ALONE = 0o077


def main(arguments: list[str]) -> None:
    """Tie, and become the program; returns only by an exception."""
    engine_pid, watch_fd, program = int(arguments[0]), int(arguments[1]), arguments[2:]
    if watch_fd >= 0:
        _leave_watcher(watch_fd)
    else:
        _die_with_parent(engine_pid)
    os.umask(_OWNER_ALONE)
    # The engine's environment holds the keys of models and tools; the program needs none, and any process of this user
    # can read what it was given.
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    os.execve(program[0], program, environment)  # noqa: S606 - the engine named the program


def _die_with_parent(engine_pid: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    # The engine may have died before the line above: then nobody will send the signal.
    if os.getppid() != engine_pid:
        sys.exit(_ENGINE_GONE)


def _leave_watcher(watch_fd: int) -> None:
    program_pid = os.getpid()
    if os.fork() != 0:
        os.close(watch_fd)
        return
    # Whatever the program inherits (the store's lock above all) must not stay open in its watcher.
    os.closerange(0, watch_fd)
    os.closerange(watch_fd + 1, max(_FD_MAX, watch_fd + 1))
    if os.read(watch_fd, 1) == b"":
        os.kill(program_pid, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
