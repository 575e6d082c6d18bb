"""Stays between the engine and one tool server, and takes the server's whole tree down when either of them ends.

A program of its own, run as a file by the engine's interpreter without site packages, so that it starts in a few
milliseconds and knows nothing of Crewlet::

    python -I -S process_wrapper.py WATCH_FD ENGINE_PID GRACE_S KILL_S COMMAND [ARGUMENT...]

``WATCH_FD`` is the reading end of a pipe whose other end the engine alone holds: its end of file means that the engine
is gone (``kill -9`` included) or wants the server gone. The server inherits stdin, stdout and stderr, so no byte passes
through here. Everything that the server starts is found, even after a double fork and a session of its own, because
orphans become children of this process (Linux). Elsewhere the server's process group is what can be found.
Exits with the server's code, or 128 plus the number of the signal that ended it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # The name that type checkers know; importing typing would cost milliseconds.
if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CANNOT_START = 127
_LOOK_AGAIN_S = 0.01


def main(arguments: list[str]) -> int:
    """Run the server until it or the engine ends, then end what is left of its tree."""
    watch, engine = int(arguments[0]), int(arguments[1])
    grace_s, kill_s = float(arguments[2]), float(arguments[3])
    os.set_inheritable(watch, False)  # noqa: FBT003 - it takes no keywords
    wakes = _hear_signals()
    adopts = _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGHUP)
    tree = _Tree(_start(arguments[4:]), adopts=adopts)
    _let_go_of_the_wire()
    _wait(tree, watch, wakes, engine)
    tree.end(grace_s, kill_s)
    return tree.code if tree.code is not None else 128 + signal.SIGKILL


def _hear_signals() -> int:
    """The reading end of a pipe that gets a byte for each signal this process minds."""
    wakes, wake = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _hear)
    return wakes


def _hear(*_: object) -> None:
    """The byte in the pipe is all that a signal has to say."""


def _prctl(option: int, value: int) -> bool:
    """Whether the kernel took it: false where there is no such call, or none for us."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        return ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False


def _start(command: list[str]) -> int:
    """The pid of the server, in a process group of its own; the server dies with this process, whatever kills it."""
    wrapper = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != wrapper:
            os._exit(_CANNOT_START)
        # Python ignores these two, and an ignored signal stays ignored in the program that is started.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - no shell is wanted: the operator wrote an argument list
    except OSError as failure:
        os.write(2, f"cannot start {command[0]}: {failure.strerror}\n".encode(errors="replace"))
    os._exit(_CANNOT_START)


def _let_go_of_the_wire() -> None:
    """Keep no end of the server's stdin and stdout, or neither side would ever see the other's end of file."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)


def _wait(tree: _Tree, watch: int, wakes: int, engine: int) -> None:
    """Return once the server has exited, the engine is gone, or somebody told this process to end."""
    poll = select.poll()
    poll.register(watch, select.POLLIN)
    poll.register(wakes, select.POLLIN)
    while os.getppid() == engine:
        ready = dict(poll.poll())
        if watch in ready:
            return
        heard = os.read(wakes, 512) if wakes in ready else b""
        tree.reap()
        # A hang-up is the kernel's word that the thread which started us has ended; the engine may well live on.
        if tree.code is not None or signal.SIGTERM in heard or signal.SIGINT in heard:
            return


class _Tree:
    """The server and everything that it started."""

    def __init__(self, root: int, *, adopts: bool) -> None:
        self.code: int | None = None
        self._root = root
        self._adopts = adopts
        self._empty = False

    def reap(self) -> None:
        """Collect who has ended; remember the server's code, and whether nobody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._empty = True
                return
            if pid == 0:
                return
            if pid == self._root:
                code = os.waitstatus_to_exitcode(status)
                self.code = code if code >= 0 else 128 - code

    def end(self, grace_s: float, kill_s: float) -> None:
        """Ask all of it to end, give it ``grace_s``, then kill, again and again as long as there is anybody."""
        self.reap()
        self._signal(signal.SIGTERM)
        self._wait_empty(grace_s, kill=False)
        self._signal(signal.SIGKILL)
        self._wait_empty(kill_s, kill=True)

    def _wait_empty(self, seconds: float, *, kill: bool) -> None:
        until = time.monotonic() + seconds
        self.reap()
        while not self._empty and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN_S)
            if kill:
                # Whoever was forked between two looks, and orphans that became ours since the last one.
                self._signal(signal.SIGKILL)
            self.reap()

    def _signal(self, number: int) -> None:
        # Once the server was reaped its group's number may belong to strangers; where orphans come to us we need it
        # no more, and elsewhere it is all there is.
        if self.code is None or not self._adopts:
            with _gone_is_fine():
                os.killpg(self._root, number)
        if self._adopts:
            for pid in _descendants(os.getpid()):
                with _gone_is_fine():
                    os.kill(pid, number)


class _gone_is_fine:  # noqa: N801 - reads as the statement that it opens; contextlib would double this program's start
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, (ProcessLookupError, PermissionError))


def _descendants(pid: int) -> list[int]:
    """The pids of all that stem from ``pid``, as far as this moment's look at them goes."""
    children = _children if os.path.exists(f"/proc/self/task/{pid}/children") else _children_by_scan()
    found: list[int] = []
    open_ends = [pid]
    while open_ends:
        below = children(open_ends.pop())
        found += below
        open_ends += below
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as listing:
                children += [int(child) for child in listing.read().split()]
    except OSError:
        pass  # It ended while we looked; its children are ours by the next look.
    return children


def _children_by_scan() -> Callable[[int], list[int]]:
    """As ``_children``, for a kernel that does not list them: one pass over all processes."""
    below: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            below.setdefault(parent, []).append(int(name))
    return lambda pid: below.get(pid, [])


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # Without Python's own goodbye, which costs more than all that went before.
