"""Whether a seat has still to look around, as its node finds out: once, and never out of ignorance."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.coordination import POSITIONS, OnboardingMark, Onboardings, Record
from crewlet.node.seat_onboarding import SeatOnboardings
from crewlet.node.turn_runner import TurnRunner
from crewlet.org import Organization, chain_hash
from crewlet.testing import VirtualClock
from tests.unit.node.companies import acme, seat_of

pytestmark = pytest.mark.virtual_time

COMPANY = acme()
MOVED = acme(units=[{"name": "Sales", "roles": [{"name": "Technology", "handle": "cto"}]}])


class CountingStore(MemoryRecordStore):
    """Counts what is read of it, and answers only when it is told to."""

    def __init__(self, bucket: MemoryBucket) -> None:
        super().__init__(bucket)
        self.reads = 0
        self.is_slow = False

    async def get(self, key: str) -> Record | None:
        self.reads += 1
        if self.is_slow:
            await asyncio.sleep(3600)
        return await super().get(key)


class Fleet:
    """Two processes that share the marks."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.bucket = MemoryBucket(POSITIONS, self.clock)
        self.stores = CountingStore(self.bucket), CountingStore(self.bucket)
        self.here, self.there = (SeatOnboardings(Onboardings(store, self.clock)) for store in self.stores)

    async def mark(self, handle: str = "cto") -> OnboardingMark | None:
        agent_id = COMPANY.agent_id_for(seat_of(COMPANY, handle))
        return await Onboardings(MemoryRecordStore(self.bucket), self.clock).get(agent_id)


def place(company: Organization = COMPANY) -> str:
    return chain_hash(company, seat_of(company, "cto"))


async def onboarded(fleet: Fleet) -> None:
    seat = fleet.here.of(COMPANY, "cto")
    await seat.due("t1")
    await seat.mark("t1", place())


async def test_a_seat_that_was_onboarded_anywhere_is_due_nowhere() -> None:
    fleet = Fleet()

    assert await fleet.here.of(COMPANY, "cto").due("t1") == place()
    assert await fleet.here.of(COMPANY, "cto").mark("t1", place())

    assert await fleet.there.of(COMPANY, "cto").due("t2") == ""


async def test_a_seat_that_moved_is_due_again() -> None:
    fleet = Fleet()
    await onboarded(fleet)

    assert await fleet.here.of(MOVED, "cto").due("t2") == place(MOVED)


async def test_a_process_that_knows_asks_no_more() -> None:
    fleet = Fleet()
    await onboarded(fleet)
    await fleet.there.of(COMPANY, "cto").due("t2")
    asked = [store.reads for store in fleet.stores]

    for known in (fleet.here, fleet.there):
        assert await known.of(COMPANY, "cto").due("t3") == ""
        assert await known.of(COMPANY, "cto").mark("t3", place())

    assert [store.reads for store in fleet.stores] == asked


async def test_no_two_turns_are_about_one_seat() -> None:
    fleet = Fleet()
    await fleet.here.of(COMPANY, "cto").due("t1")

    assert await fleet.there.of(COMPANY, "cto").due("t2") == ""
    await fleet.here.of(COMPANY, "cto").give_back("t1")
    assert await fleet.there.of(COMPANY, "cto").due("t2") == place()


@pytest.mark.parametrize("is_slow", [False, True], ids=["out of reach", "silent"])
async def test_what_nobody_can_tell_is_not_due_and_the_next_turn_asks_again(is_slow: bool) -> None:
    fleet = Fleet()
    fleet.stores[0].is_slow, fleet.stores[0].link.cut = is_slow, not is_slow
    began_s = fleet.clock.elapsed_s()

    with capture_logs() as logs:
        assert await fleet.here.of(COMPANY, "cto").due("t1") == ""

    assert [each["seat"] for each in logs if each["event"] == "onboarding_unknown"] == ["cto"]
    assert fleet.clock.elapsed_s() - began_s <= limits.ONBOARDING_WAIT_S
    fleet.stores[0].is_slow = fleet.stores[0].link.cut = False
    assert await fleet.here.of(COMPANY, "cto").due("t2") == place()


async def test_a_claim_that_landed_unheard_of_does_not_keep_its_own_process_waiting() -> None:
    fleet = Fleet()
    fleet.stores[0].link.next_write = "cut after"

    with capture_logs():
        assert await fleet.here.of(COMPANY, "cto").due("t1") == ""
    fleet.stores[0].link.cut = False

    assert await fleet.here.of(COMPANY, "cto").due("t2") == place()


async def test_nor_does_it_once_later_turns_were_not_heard_either() -> None:
    fleet = Fleet()
    fleet.stores[0].link.next_write = "cut after"

    with capture_logs():
        for turn in ("t1", "t2", "t3"):
            assert await fleet.here.of(COMPANY, "cto").due(turn) == ""
    fleet.stores[0].link.cut = False

    assert await fleet.here.of(COMPANY, "cto").due("t4") == place()


class Epoch:
    """What a runner asks of the company in force to say whose turn has ended."""

    organization = COMPANY


async def test_a_turn_that_is_taken_over_and_ended_leaves_no_claim_to_wait_for() -> None:
    fleet = Fleet()
    await fleet.there.of(COMPANY, "cto").due("t1")
    successor: Any = (Epoch, None, None, None, fleet.here)

    TurnRunner(*successor).ended("cto", "t1")

    assert await fleet.here.of(COMPANY, "cto").due("t2") == place()


async def test_a_mark_that_cannot_be_written_is_not_said_to_stand() -> None:
    fleet = Fleet()
    await fleet.here.of(COMPANY, "cto").due("t1")
    fleet.stores[0].link.cut = True

    with capture_logs():
        assert not await fleet.here.of(COMPANY, "cto").mark("t1", place())
        await fleet.here.of(COMPANY, "cto").give_back("t1")
    fleet.stores[0].link.cut = False

    assert await fleet.here.of(COMPANY, "cto").due("t2") == place()


async def test_a_seat_that_left_and_came_back_is_known_still() -> None:
    fleet = Fleet()
    await onboarded(fleet)
    nobody = fleet.here.of(acme(units=[]), "cto")

    assert await nobody.due("t2") == ""
    assert await fleet.there.of(COMPANY, "cto").due("t3") == ""
    mark = await fleet.mark()
    assert mark is not None
    assert (mark.chain_hash, mark.claimed_by) == (place(), "")
