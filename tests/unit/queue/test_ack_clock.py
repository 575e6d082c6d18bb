"""The ack clock: what is worked is extended each third of its window, and nothing else ever is."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest

from crewlet.backends.nats.queue_ack_clock import AckClock

pytestmark = pytest.mark.virtual_time

ACK_WAIT_S = 30.0


class Extended:
    """What was extended, and when."""

    def __init__(self) -> None:
        self._began_at = asyncio.get_running_loop().time()
        self.beats: list[tuple[float, list[str]]] = []
        self.clock = AckClock[str](ACK_WAIT_S, self._extend)

    def _extend(self, held: Collection[str]) -> None:
        self.beats.append((round(asyncio.get_running_loop().time() - self._began_at, 3), [*held]))


async def test_what_is_held_at_each_third_of_the_window_is_extended() -> None:
    extended, held = Extended(), ["a", "b"]

    extended.clock.start(held)
    await asyncio.sleep(15.0)
    held.remove("a")
    await asyncio.sleep(10.0)

    assert extended.beats == [(10.0, ["a", "b"]), (20.0, ["b"])]


async def test_what_is_done_is_extended_no_more() -> None:
    extended = Extended()
    extended.clock.start(["a"])
    await asyncio.sleep(15.0)

    extended.clock.stop()
    await asyncio.sleep(100.0)

    assert extended.beats == [(10.0, ["a"])]


async def test_each_unit_of_work_is_extended_a_third_after_its_own_beginning() -> None:
    extended = Extended()
    extended.clock.start(["a"])
    await asyncio.sleep(4.0)
    extended.clock.stop()
    await asyncio.sleep(2.0)

    extended.clock.start(["b"])
    await asyncio.sleep(25.0)

    assert extended.beats == [(16.0, ["b"]), (26.0, ["b"])]


async def test_work_after_an_idle_while_is_extended_too() -> None:
    extended = Extended()
    extended.clock.start(["a"])
    extended.clock.stop()
    await asyncio.sleep(50.0)

    extended.clock.start(["b"])
    await asyncio.sleep(12.0)

    assert extended.beats == [(60.0, ["b"])]


async def test_a_closed_clock_extends_nothing_whatever_begins() -> None:
    extended = Extended()
    extended.clock.start(["a"])

    extended.clock.close()
    extended.clock.start(["b"])
    await asyncio.sleep(100.0)

    assert extended.beats == []
