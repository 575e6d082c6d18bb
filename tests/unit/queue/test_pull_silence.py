"""Silence at the broker: each wait is told of its own, however many there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from crewlet.backends.nats.pull_silence import SilenceWatch

pytestmark = pytest.mark.virtual_time

MAX_S = 7.0


class Told:
    """Which waits went silent, and when."""

    def __init__(self) -> None:
        self._began_at = asyncio.get_running_loop().time()
        self.silent: list[tuple[str, float]] = []

    def alarm(self, name: str) -> Callable[[], None]:
        return lambda: self.silent.append((name, round(asyncio.get_running_loop().time() - self._began_at, 3)))


async def test_each_wait_is_told_when_it_was_silent_for_too_long() -> None:
    told, watch = Told(), SilenceWatch(MAX_S)

    watch.begin(told.alarm("a"))
    await asyncio.sleep(2.0)
    watch.begin(told.alarm("b"))
    await asyncio.sleep(20.0)

    assert told.silent == [("a", MAX_S), ("b", 2.0 + MAX_S)]


async def test_a_sound_puts_off_the_alarm_of_its_own_wait() -> None:
    told, watch = Told(), SilenceWatch(MAX_S)
    heard, silent = told.alarm("heard"), told.alarm("silent")
    watch.begin(heard)
    watch.begin(silent)

    await asyncio.sleep(3.0)
    watch.heard(heard)
    await asyncio.sleep(20.0)

    assert told.silent == [("silent", MAX_S), ("heard", 3.0 + MAX_S)]


async def test_a_wait_that_ended_is_told_nothing_and_hears_nothing() -> None:
    told, watch = Told(), SilenceWatch(MAX_S)
    alarm = told.alarm("ended")
    watch.begin(alarm)

    watch.end(alarm)
    watch.heard(alarm)
    await asyncio.sleep(20.0)

    assert told.silent == []


async def test_a_wait_that_begins_again_has_all_its_time() -> None:
    told, watch = Told(), SilenceWatch(MAX_S)
    alarm = told.alarm("again")
    watch.begin(alarm)
    await asyncio.sleep(6.0)

    watch.end(alarm)
    watch.begin(alarm)
    await asyncio.sleep(20.0)

    assert told.silent == [("again", 6.0 + MAX_S)]


async def test_a_closed_watch_tells_nobody() -> None:
    told, watch = Told(), SilenceWatch(MAX_S)
    watch.begin(told.alarm("a"))

    watch.close()
    await asyncio.sleep(20.0)

    assert told.silent == []
