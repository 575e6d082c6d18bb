"""The thread that ends a process whose loop has stopped turning: past the lease TTL it provably owns nothing (S1)."""

from __future__ import annotations

import faulthandler
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, Protocol

from crewlet.base import limits
from crewlet.base.clock import Clock

__all__ = ["EXIT_WEDGED", "Backstop", "NativeBackstop", "Watchdog", "overdue"]

EXIT_WEDGED: Final = 75
"""The exit code of a node that its watchdog ended; a supervisor starts it again, as it does after code 1."""

_STDERR: Final = 2


class Backstop(Protocol):
    """What ends the process even while native code holds the interpreter, where no thread of ours can run."""

    def rearm(self, after_s: float) -> None:
        """End the process in ``after_s`` seconds, unless armed again before."""
        ...

    def disarm(self) -> None:
        """Do not."""
        ...


class NativeBackstop:
    """The interpreter's own timer: it dumps every stack to standard error and exits with code 1 (trap 41)."""

    def rearm(self, after_s: float) -> None:
        """Start the timer anew."""
        faulthandler.dump_traceback_later(after_s, exit=True)

    def disarm(self) -> None:
        """Stop it."""
        faulthandler.cancel_dump_traceback_later()


class Watchdog:
    """Beats of named duties, and a thread that compares them with the clock.

    ``threshold_s`` is the lease TTL in force, not a knob of its own. A duty that has ended is taken off with
    :meth:`forget`: what is gone holds nothing, and when nothing is watched the watchdog stands down. It is disarmed for
    the whole of a shutdown. The clock counts sleep; when the watcher itself did not look for a good part of the
    threshold (a lid was closed, the process was stopped), that says nothing of the others: each gets the threshold
    anew. What slept acts on no seat before it has renewed it, whether or not it is ended. The backstop knows nothing of
    this: a process that is stopped behind its back for longer than that waits ends as it goes on; see :meth:`paused`.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        threshold_s: float,
        end: Callable[[str], None] | None = None,
        backstop: Backstop | None = None,
    ) -> None:
        self._clock = clock
        self._threshold_s = threshold_s
        self._end = end or _end_process
        self._backstop = backstop or NativeBackstop()
        self._beats: dict[str, float] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def beat_every_s(self) -> float:
        """How often a watched duty beats; no more often than the threshold needs (a healthy node never ends itself)."""
        return min(limits.WATCHDOG_BEAT_MAX_S, self._threshold_s / limits.WATCHDOG_BEATS_PER_THRESHOLD)

    def arm(self) -> None:
        """Start watching."""
        self._backstop.rearm(self._backstop_s)
        self._thread = threading.Thread(target=self._watch, name="crewlet-watchdog", daemon=True)
        self._thread.start()

    def beat(self, name: str) -> None:
        """The duty ``name`` turns; from the first beat on it is watched."""
        with self._lock:
            self._beats[name] = self._clock.elapsed_s()
        if self._thread is not None and not self._stopped.is_set():
            self._backstop.rearm(self._backstop_s)

    def forget(self, name: str) -> None:
        """The duty ``name`` has ended."""
        with self._lock:
            self._beats.pop(name, None)
            nobody_left = not self._beats
        if nobody_left:
            self._backstop.disarm()

    def disarm(self) -> None:
        """Watch no more; harmless when repeated."""
        self._stopped.set()
        self._backstop.disarm()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(limits.WATCHDOG_JOIN_S)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the process in here, and it may go on whenever it likes."""
        self._backstop.disarm()
        try:
            yield
        finally:
            if self._thread is not None and not self._stopped.is_set() and self._beats:
                self._backstop.rearm(self._backstop_s)

    @property
    def _backstop_s(self) -> float:
        return self._threshold_s * limits.WATCHDOG_BACKSTOP_FACTOR

    def _watch(self) -> None:
        looked_at_s = self._clock.elapsed_s()
        while not self._stopped.wait(self.beat_every_s):
            now_s = self._clock.elapsed_s()
            slept = now_s - looked_at_s >= self._threshold_s * limits.WATCHDOG_OVERSLEPT_FRACTION
            looked_at_s = now_s
            with self._lock:
                if slept:
                    self._beats = dict.fromkeys(self._beats, now_s)
                beats = dict(self._beats)
            late = overdue(beats, now_s, self._threshold_s)
            if late is not None and not self._stopped.is_set():
                self._stopped.set()
                name, lag_s = late
                self._end(
                    f"crewlet: {name} has not turned for {lag_s:.1f} s, and a lease lasts {self._threshold_s:g} s:"
                    f" this process owns nothing any more and ends with code {EXIT_WEDGED}\n"
                )


def overdue(beats: dict[str, float], now_s: float, threshold_s: float) -> tuple[str, float] | None:
    """The duty that lags the most and how far, if any lags past the threshold; ``None`` where nothing is watched."""
    lags = {name: now_s - beat_s for name, beat_s in beats.items()}
    name = max(lags, key=lags.__getitem__, default=None)
    return None if name is None or lags[name] <= threshold_s else (name, lags[name])


def _end_process(notice: str) -> None:
    # Raw, and no cleanup: whatever a wedged process still waits on would hang this too.
    os.write(_STDERR, notice.encode())
    faulthandler.dump_traceback(file=_STDERR, all_threads=True)
    os._exit(EXIT_WEDGED)
