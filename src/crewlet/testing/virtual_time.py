"""An event loop whose time jumps to the next timer instead of passing, and the clock that goes with it.

An hour of waiting costs nothing, the order of events is the same on every run, and a deadlock is an error at once:
when nothing is ready and no timer is set, nothing could ever happen again. Threads, sockets and child processes have
a time of their own and do not belong on this loop.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, TypeVar

from crewlet.base.errors import CrewletError

__all__ = ["VirtualClock", "VirtualDeadlock", "VirtualTimeExceeded", "VirtualTimeLoop", "run_virtual"]

T = TypeVar("T")

DEFAULT_LIMIT_S = 30 * 24 * 3600.0
DEFAULT_STARTED = datetime(2030, 1, 1, tzinfo=UTC)
_TASKS_NAMED_MAX = 10
# asyncio's own step is 1 ns, which vanishes beside large times: a timer would be due and never run.
_CLOCK_RESOLUTION_S = 1e-6
_LOOKS_EVERY = 64


class VirtualDeadlock(CrewletError):
    """Nothing is ready and no timer is set, so nothing can ever happen again; names the tasks that wait."""


class VirtualTimeExceeded(CrewletError):
    """Virtual time passed the run's limit: most likely something repeats for ever."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that starts at time 0 and jumps to the next timer whenever nothing is ready."""

    def __init__(self, *, limit_s: float = DEFAULT_LIMIT_S) -> None:
        self._now_s = 0.0
        self._limit_s = limit_s
        super().__init__(_JumpingSelector(self))
        self._clock_resolution = _CLOCK_RESOLUTION_S

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now_s

    def run_in_executor(self, *_: object, **__: object) -> NoReturn:
        """Refused: a thread's time is real, and the loop would jump past it."""
        message = "threads do not belong on a virtual-time loop"
        raise RuntimeError(message)

    def pass_time(self, duration_s: float | None) -> None:
        """Move to ``duration_s`` from now; ``None`` says that no timer is set.

        Raises ``VirtualDeadlock`` or ``VirtualTimeExceeded``.
        """
        if duration_s is None:
            raise VirtualDeadlock(_describe_deadlock(self))
        self._now_s += duration_s
        if self._now_s > self._limit_s:
            raise VirtualTimeExceeded(f"virtual time passed its limit of {self._limit_s} s")


class VirtualClock:
    """The wall clock and the elapsed time of a virtual-time loop: the running one unless another is given."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, *, started: datetime = DEFAULT_STARTED) -> None:
        self._loop = loop or asyncio.get_running_loop()
        self._started = started
        self._read = (-1.0, started)

    def now(self) -> datetime:
        """The wall time, in UTC: ``started`` when the loop was made."""
        now_s, (read_s, read) = self._loop.time(), self._read
        if now_s != read_s:
            read = self._started + timedelta(seconds=now_s)
            self._read = now_s, read
        return read

    def elapsed_s(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._loop.time()


def run_virtual(main: Coroutine[Any, Any, T], *, limit_s: float = DEFAULT_LIMIT_S) -> T:
    """Run ``main`` to its end in virtual time and return its result.

    Raises ``VirtualDeadlock`` when nothing can happen any more and ``VirtualTimeExceeded`` after ``limit_s`` virtual
    seconds; what still runs then is cancelled first.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(limit_s=limit_s)) as runner:
        return runner.run(main)


class _JumpingSelector(selectors.DefaultSelector):
    """Looks for input without waiting, and lets the loop's time pass instead."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop
        self._busy = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:
            # Callbacks are ready. All that could arrive meanwhile is a word from a signal's handler, and it can wait.
            self._busy += 1
            if self._busy % _LOOKS_EVERY:
                return []
        ready = super().select(0)
        if not ready and timeout != 0:
            self._loop.pass_time(timeout)
        return ready


def _describe_deadlock(loop: asyncio.AbstractEventLoop) -> str:
    waiting = sorted(f"{task.get_name()} {_where(task)}" for task in asyncio.all_tasks(loop))
    named = "".join(f"\n  {line}" for line in waiting[:_TASKS_NAMED_MAX])
    more = len(waiting) - _TASKS_NAMED_MAX
    return f"nothing is ready and no timer is set; waiting:{named}" + (f"\n  and {more} more" if more > 0 else "")


def _where(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    return f"at {frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else "not started"
