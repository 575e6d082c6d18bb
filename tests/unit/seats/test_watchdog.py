"""The watchdog: a process whose loop stands still ends, one that sleeps, stops or works does not."""

from __future__ import annotations

import asyncio
import signal
import sys
import textwrap
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime

import psutil
import pytest

from crewlet.base.clock import SystemClock
from crewlet.seats.watchdog import EXIT_WEDGED, Watchdog, overdue
from crewlet.testing.waiting import wait_until

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.spec("S-170")
def test_nothing_is_overdue_where_nothing_is_watched() -> None:
    assert overdue({}, 1000.0, 45.0) is None


@pytest.mark.parametrize(("lag_s", "late"), [(45.0, None), (45.1, ("heartbeat", 45.1))])
def test_a_duty_is_overdue_past_the_threshold_alone(lag_s: float, late: tuple[str, float] | None) -> None:
    assert overdue({"heartbeat": 0.0, "sweep": lag_s}, lag_s, 45.0) == late


@pytest.mark.spec("S-169")
@pytest.mark.parametrize("threshold_s", [6.0, 45.0, 3600.0])
def test_a_beat_comes_many_times_within_the_threshold(threshold_s: float) -> None:
    watchdog = Watchdog(HandClock(), threshold_s=threshold_s, end=print, backstop=Backstops())

    assert watchdog.beat_every_s <= min(threshold_s / 10, 1.0)


@dataclass
class HandClock:
    """A clock that a test sets."""

    elapsed: float = 0.0
    reads: int = 0

    def now(self) -> datetime:
        return BEGIN

    def elapsed_s(self) -> float:
        self.reads += 1
        return self.elapsed


@dataclass
class Backstops:
    """How often the interpreter's timer was set, and whether it runs."""

    armed: bool = False
    set: list[float] = field(default_factory=list[float])

    def rearm(self, after_s: float) -> None:
        self.armed = True
        self.set.append(after_s)

    def disarm(self) -> None:
        self.armed = False


class Watched:
    """A watchdog over a clock of the test's, with a threshold of a tenth of a second: its thread looks every 10 ms."""

    def __init__(self) -> None:
        self.clock, self.backstop = HandClock(), Backstops()
        self.said: list[str] = []
        self.ended = threading.Event()
        self.watchdog = Watchdog(self.clock, threshold_s=0.1, end=self._end, backstop=self.backstop)

    def _end(self, notice: str) -> None:
        self.said.append(notice)
        self.ended.set()

    def let_pass(self, seconds: float) -> None:
        """In steps that the watcher keeps up with: it has looked after each."""
        for _ in range(round(seconds / 0.02)):
            self.clock.elapsed += 0.02
            self.let_look()

    def let_look(self) -> None:
        """Return once the watcher has looked, or will look no more."""
        reads = self.clock.reads
        for _ in range(10):
            if self.clock.reads > reads + 1 or self.ended.is_set():
                return
            self.ended.wait(0.005)


def test_a_duty_that_stands_still_ends_the_process() -> None:
    watched = Watched()
    watched.watchdog.beat("heartbeat")
    watched.watchdog.arm()

    watched.let_pass(0.2)
    watched.watchdog.disarm()

    assert len(watched.said) == 1
    assert "heartbeat has not turned" in watched.said[0]


@pytest.mark.spec("S-168")
def test_a_disarmed_watchdog_ends_nothing() -> None:
    watched = Watched()
    watched.watchdog.beat("heartbeat")
    watched.watchdog.arm()
    watched.watchdog.disarm()

    watched.let_pass(0.3)

    assert watched.said == []
    assert not watched.backstop.armed


@pytest.mark.spec("S-170")
def test_what_has_ended_is_not_wedged() -> None:
    watched = Watched()
    watched.watchdog.beat("heartbeat")
    watched.watchdog.arm()
    watched.watchdog.forget("heartbeat")

    watched.let_pass(0.3)
    watched.watchdog.disarm()

    assert watched.said == []
    assert not watched.backstop.armed


def test_after_the_machine_slept_a_duty_has_the_threshold_anew() -> None:
    watched = Watched()
    watched.watchdog.beat("heartbeat")
    watched.watchdog.arm()
    watched.let_look()

    watched.clock.elapsed += 3600.0
    watched.let_look()
    alive = not watched.said
    watched.let_pass(0.2)
    watched.watchdog.disarm()

    assert alive
    assert len(watched.said) == 1


def test_a_stop_that_is_shorter_than_a_lease_does_not_end_a_duty_that_had_not_just_beaten() -> None:
    watched = Watched()
    watched.watchdog.beat("heartbeat")
    watched.watchdog.arm()
    watched.let_look()
    watched.let_pass(0.04)

    watched.clock.elapsed += 0.09
    watched.let_look()
    alive = not watched.said
    watched.let_pass(0.2)
    watched.watchdog.disarm()

    assert alive
    assert len(watched.said) == 1


def test_each_beat_sets_the_interpreters_timer_above_the_threshold() -> None:
    watched = Watched()
    watched.watchdog.arm()
    watched.watchdog.beat("heartbeat")
    watched.watchdog.disarm()

    assert len(watched.backstop.set) == 2
    assert all(after_s > 0.1 for after_s in watched.backstop.set)


WEDGED = """
    import asyncio, ctypes, sys, time
    from crewlet.base.clock import SystemClock
    from crewlet.seats.watchdog import Watchdog

    async def main() -> None:
        watchdog = Watchdog(SystemClock(), threshold_s=0.5)
        watchdog.beat("heartbeat")
        watchdog.arm()
        {stand_still}

    asyncio.run(main())
    """


@pytest.mark.slow
@pytest.mark.spec("S-164", "S-166", "S-167")
async def test_a_blocked_loop_ends_with_code_75_and_every_stack_on_standard_error() -> None:
    code, err = await run(WEDGED.format(stand_still="time.sleep(30)"))

    assert code == EXIT_WEDGED == 75
    assert "has not turned" in err
    assert "in main" in err


@pytest.mark.slow
async def test_native_code_that_holds_the_interpreter_ends_with_code_1_and_its_stack() -> None:
    code, err = await run(WEDGED.format(stand_still="ctypes.PyDLL(None).sleep(30)"))

    assert code == 1
    assert "in main" in err


STOPPED = """
    import asyncio, os, signal
    from crewlet.base.clock import SystemClock
    from crewlet.cli.suspension import Suspension
    from crewlet.seats.watchdog import Watchdog

    async def main() -> None:
        suspension = Suspension()
        watchdog = suspension.watched_by(Watchdog(SystemClock(), threshold_s=0.5))
        suspension.listen()
        watchdog.beat("heartbeat")
        watchdog.arm()
        print(flush=True)
        for _ in range(40):
            await asyncio.sleep(0.05)
            watchdog.beat("heartbeat")
        {then}

    asyncio.run(main())
    """


@pytest.mark.slow
@pytest.mark.parametrize(("then", "code"), [("watchdog.disarm()", 0), ("__import__('time').sleep(30)", EXIT_WEDGED)])
async def test_a_process_stopped_by_its_terminal_goes_on_and_is_watched_again(then: str, code: int) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        textwrap.dedent(STOPPED).format(then=then),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    await process.stdout.readline()
    clock = SystemClock()

    process.send_signal(signal.SIGTSTP)
    await wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED, what="the stop")
    stopped_at_s = clock.elapsed_s()
    await wait_until(lambda: clock.elapsed_s() > stopped_at_s + 1.0, what="a stop of twice the threshold")
    process.send_signal(signal.SIGCONT)

    async with asyncio.timeout(20):
        assert await process.wait() == code


async def run(script: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(script), stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(20):
        _, err = await process.communicate()
    return process.returncode, err.decode()
