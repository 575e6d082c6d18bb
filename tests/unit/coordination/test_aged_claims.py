"""What goes by its bucket's age alone: fires, custody and follows, and how long each is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.coordination import CUSTODY, FIRES, FOLLOWS, Custodies, Fires, Follows, RecordStore, Slot
from crewlet.testing import VirtualClock, run_virtual

DAY_S = 86400.0


def aged(slot: Slot, days: float, run: Callable[[RecordStore, VirtualClock], Awaitable[None]]) -> None:
    async def main() -> None:
        clock = VirtualClock()
        await run(MemoryRecordStore(MemoryBucket(slot, clock)), clock)

    run_virtual(main(), limit_s=days * DAY_S)


def test_a_fire_stays_claimed_for_seven_days() -> None:
    async def run(store: RecordStore, clock: VirtualClock) -> None:
        fires = Fires(store, clock)
        first = await fires.claim("role:ceo", "standup", "20300102T0900", "ceo", claimant="a")
        await asyncio.sleep(7 * DAY_S - 1)
        again = await fires.claim("role:ceo", "standup", "20300102T0900", "ceo", claimant="b")
        await asyncio.sleep(1)

        assert (first, again) == (True, False)
        assert await fires.standing("role:ceo", "standup", "20300102T0900", "ceo") is None

    aged(FIRES, 8, run)


@pytest.mark.spec("C-140")
def test_a_keeper_finds_its_batch_for_thirty_two_days() -> None:
    async def run(store: RecordStore, clock: VirtualClock) -> None:
        custodies = Custodies(store, clock)
        claimed = await custodies.claim("b1", keeper="north")
        await asyncio.sleep(32 * DAY_S - 1)
        still = await custodies.claim("b1", keeper="north")
        await asyncio.sleep(1)

        assert still == claimed
        assert await custodies.standing("b1") is None

    aged(CUSTODY, 33, run)


@pytest.mark.spec("C-139")
def test_a_thread_is_followed_for_ninety_days_from_the_last_reason() -> None:
    async def run(store: RecordStore, clock: VirtualClock) -> None:
        follows = Follows(store, clock)
        await follows.follow("slack", "ceo", "C1", "t1", reason="mention")
        await asyncio.sleep(60 * DAY_S)
        await follows.follow("slack", "ceo", "C1", "t1", reason="post")
        await asyncio.sleep(90 * DAY_S - 1)
        before = await follows.is_following("slack", "ceo", "C1", "t1")
        await asyncio.sleep(1)

        assert before
        assert not await follows.is_following("slack", "ceo", "C1", "t1")

    aged(FOLLOWS, 200, run)
