"""The virtual-time loop jumps, orders, and refuses to hang."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from datetime import UTC, datetime, timedelta

import pytest

from crewlet.base.clock import Clock
from crewlet.testing import VirtualClock, VirtualDeadlock, VirtualTimeExceeded, run_virtual

YEAR_S = 365 * 24 * 3600.0


def test_a_long_sleep_takes_its_virtual_time_and_no_real_time() -> None:
    async def sleep_a_week() -> float:
        await asyncio.sleep(7 * 24 * 3600)
        return asyncio.get_running_loop().time()

    began = time.perf_counter()
    ended_at = run_virtual(sleep_a_week())

    assert ended_at == pytest.approx(7 * 24 * 3600)
    assert time.perf_counter() - began < 1


def test_timers_fire_in_the_order_of_their_times() -> None:
    fired: list[str] = []

    async def fire(name: str, after_s: float) -> None:
        await asyncio.sleep(after_s)
        fired.append(name)

    async def main() -> None:
        await asyncio.gather(fire("third", 3600), fire("first", 0.001), fire("second", 60))

    run_virtual(main())

    assert fired == ["first", "second", "third"]


def test_a_short_timer_still_fires_late_in_a_long_run() -> None:
    async def main() -> float:
        await asyncio.sleep(20 * YEAR_S)
        await asyncio.sleep(0.1)
        return asyncio.get_running_loop().time()

    ended_at = run_virtual(main(), limit_s=30 * YEAR_S)

    assert ended_at == pytest.approx(20 * YEAR_S + 0.1, abs=1e-3)


def test_a_timeout_cuts_a_wait_that_nothing_ends() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(45):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == pytest.approx(45)


def test_a_deadlock_is_an_error_that_names_the_waiting_task() -> None:
    async def wait_for_nobody() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.create_task(wait_for_nobody(), name="the-forgotten-one")

    with pytest.raises(VirtualDeadlock, match=r"the-forgotten-one at .*test_virtual_time\.py"):
        run_virtual(main())


def test_a_deadlock_still_runs_what_cancellation_runs() -> None:
    cleaned: list[bool] = []

    async def main() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            cleaned.append(True)

    with pytest.raises(VirtualDeadlock):
        run_virtual(main())
    gc.collect()

    assert cleaned == [True]


def test_a_run_that_repeats_for_ever_ends_at_its_limit() -> None:
    async def tick_for_ever() -> None:
        for _ in itertools.count():
            await asyncio.sleep(1)

    with pytest.raises(VirtualTimeExceeded, match="3600"):
        run_virtual(tick_for_ever(), limit_s=3600)


def test_a_thread_is_refused() -> None:
    async def main() -> None:
        await asyncio.to_thread(time.perf_counter)

    with pytest.raises(RuntimeError, match="threads do not belong"):
        run_virtual(main())


def test_an_error_of_the_main_coroutine_travels_on() -> None:
    async def fail() -> None:
        await asyncio.sleep(1)
        message = "on purpose"
        raise ValueError(message)

    with pytest.raises(ValueError, match="on purpose"):
        run_virtual(fail())


def test_the_clock_moves_with_the_loop() -> None:
    started = datetime(2031, 5, 4, tzinfo=UTC)

    async def main() -> tuple[datetime, float]:
        clock: Clock = VirtualClock(started=started)
        await asyncio.sleep(90)
        return clock.now(), clock.elapsed_s()

    now, elapsed_s = run_virtual(main())

    assert now == started + timedelta(seconds=90)
    assert elapsed_s == pytest.approx(90)


@pytest.mark.virtual_time
async def test_a_marked_test_runs_in_virtual_time() -> None:
    began = time.perf_counter()

    await asyncio.sleep(3600)

    assert asyncio.get_running_loop().time() >= 3600
    assert time.perf_counter() - began < 1
