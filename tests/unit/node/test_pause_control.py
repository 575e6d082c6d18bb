"""Pausing and resuming on a person's word: what is answered, and what is told of it, once for each change."""

from __future__ import annotations

from datetime import timedelta

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base.errors import Unavailable
from crewlet.coordination import POSITIONS, SeatPauses
from crewlet.events import Body, Event
from crewlet.events.types import SeatPaused, SeatResumed
from crewlet.node.face import NoSuchSeat, NotAnAgent
from crewlet.node.pause_control import SeatPauseControl
from crewlet.testing import SeededIds, VirtualClock
from tests.unit.node.companies import acme

pytestmark = pytest.mark.virtual_time

ADA, BOB = "operator:ada", "operator:bob"


class World:
    """A company's pauses; ``broken`` keeps what is told from being published."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self.now = clock.now()
        self.told: list[Body] = []
        self.broken = False
        self.store = MemoryRecordStore(MemoryBucket(POSITIONS, clock))
        self.control = SeatPauseControl(SeatPauses(self.store), acme, self._publish, clock, SeededIds(1))

    async def _publish(self, topic: str, event: Event) -> Event:
        if self.broken:
            raise Unavailable("the broker is away")
        assert topic == f"crewlet.events.{event.type}"
        assert isinstance(event.data, Body)
        self.told.append(event.data)
        return event


@pytest.fixture
async def world() -> World:
    return World()


@pytest.mark.spec("E-113", "E-117")
async def test_a_pause_and_its_end_are_told_with_who_when_and_why(world: World) -> None:
    await world.control.pause("ceo", by=ADA, reason="audit", stop_running=True)
    await world.control.resume("ceo", by=BOB)

    assert world.told == [
        SeatPaused(agent_handle="ceo", paused_by=ADA, paused_at=world.now, reason="audit", stop_running=True),
        SeatResumed(agent_handle="ceo", paused_by=ADA, paused_at=world.now, resumed_by=BOB),
    ]


@pytest.mark.spec("E-117")
async def test_a_second_pause_is_none_and_told_by_nobody(world: World) -> None:
    await world.control.pause("ceo", by=ADA, reason="audit")

    second = await world.control.pause("ceo", by=BOB, reason="holiday")

    assert (second.changed, second.paused.by, second.paused.reason) == (False, ADA, "audit")
    assert len(world.told) == 1


@pytest.mark.spec("E-117")
async def test_a_pause_that_comes_to_stop_what_runs_is_told_again(world: World) -> None:
    await world.control.pause("ceo", by=ADA, reason="audit")

    amended = await world.control.pause("ceo", by=BOB, reason="now", stop_running=True)

    assert (amended.changed, amended.paused.by, amended.paused.stop_running) == (True, ADA, True)
    assert world.told[1:] == [
        SeatPaused(agent_handle="ceo", paused_by=BOB, paused_at=world.now, reason="now", stop_running=True)
    ]


async def test_a_resume_of_a_seat_that_is_not_paused_ends_nothing(world: World) -> None:
    resumed = await world.control.resume("ceo", by=ADA)

    assert (resumed.ended, world.told) == (None, [])


@pytest.mark.parametrize(("handle", "error"), [("cfo", NoSuchSeat), ("ann", NotAnAgent)])
async def test_what_is_no_agents_seat_is_not_paused(world: World, handle: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        await world.control.pause(handle, by=ADA)
    with pytest.raises(error):
        await world.control.resume(handle, by=ADA)

    assert await SeatPauses(world.store).every() == []


async def test_news_that_is_lost_leaves_the_pause_as_it_was_answered(world: World) -> None:
    world.broken = True

    paused = await world.control.pause("ceo", by=ADA)

    assert paused.changed
    assert [pause.handle for pause in await SeatPauses(world.store).every()] == ["ceo"]


async def test_a_seat_that_left_the_company_is_no_longer_paused(world: World) -> None:
    await world.control.pause("ceo", by=ADA)
    await world.control.pause("cto", by=ADA)

    await world.control.forget(["ceo"], before=world.now + timedelta(seconds=1))

    assert [pause.handle for pause in await SeatPauses(world.store).every()] == ["cto"]
    assert world.told[-1] == SeatResumed(agent_handle="ceo", paused_by=ADA, paused_at=world.now)


async def test_a_pause_of_the_seat_that_came_in_its_place_is_left(world: World) -> None:
    await world.control.pause("ceo", by=ADA)

    await world.control.forget(["ceo"], before=world.now)

    assert [pause.handle for pause in await SeatPauses(world.store).every()] == ["ceo"]


async def test_a_store_that_does_not_answer_costs_a_change_of_company_nothing(world: World) -> None:
    await world.control.pause("ceo", by=ADA)
    world.store.link.cut = True

    await world.control.forget(["ceo"], before=world.now + timedelta(seconds=1))

    assert isinstance(world.told[-1], SeatPaused)
