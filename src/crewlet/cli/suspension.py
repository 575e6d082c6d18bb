"""Ctrl-Z: the process stops with its watchdog's knowledge, and goes on when it is told to, however late that is."""

from __future__ import annotations

import asyncio
import os
import signal

from crewlet.seats import Watchdog

__all__ = ["Suspension"]


class Suspension:
    """What SIGTSTP means here: what a terminal expects, but for the interpreter's timer, which must not run meanwhile.

    Whoever was stopped for longer than a lease lasts has lost its seats and acts on none of them before it has looked;
    that is no reason to end it. SIGSTOP cannot be caught: a process stopped by that for longer than the timer waits
    ends as it goes on, with code 1, and its supervisor starts it again.
    """

    def __init__(self) -> None:
        self._watchdog: Watchdog | None = None

    def watched_by(self, watchdog: Watchdog) -> Watchdog:
        """The watchdog to tell, as it was given."""
        self._watchdog = watchdog
        return watchdog

    def listen(self) -> None:
        """Heed the signal from now on, unless this process was started to ignore it. In the running loop."""
        if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTSTP, self._stop)

    def _stop(self) -> None:
        if self._watchdog is None:
            os.kill(os.getpid(), signal.SIGSTOP)
            return
        with self._watchdog.paused():
            os.kill(os.getpid(), signal.SIGSTOP)
