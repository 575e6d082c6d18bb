"""A seat's mail waits at the broker while a budget has no room, and comes once it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crewlet.backends.memory import MemoryBroker, MemoryQueue
from crewlet.base.errors import Unavailable
from crewlet.base.trace import fresh_trace
from crewlet.events import new_event
from crewlet.events.types import TaskAssigned
from crewlet.node.budget_park import BUDGET_WINDOW, BudgetPark
from crewlet.node.seat_holds import SeatHolds
from crewlet.queue import Ack, Defer, Delivery, Outcome, Subscription, inbox_of
from crewlet.testing import SeededIds
from tests.unit.node.budget_world import BudgetWorld

pytestmark = pytest.mark.virtual_time

DAY_S = 24 * 3600.0


class World(BudgetWorld):
    """A node that has the ceo and the cto."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = MemoryQueue(MemoryBroker(self.clock), node="a")
        self.holds = SeatHolds(self.queue, lambda _: 1)
        for handle in ("ceo", "cto"):
            self.holds.open(handle)
        self.park = BudgetPark(
            self.budgets,
            self.in_force,
            self.holds,
            clock=self.clock,
            on_refused=self.refused.append,
        )
        self.park.start()

    def is_held(self, handle: str = "ceo") -> bool:
        return BUDGET_WINDOW in self.holds.of(handle)

    async def close(self) -> None:
        await self.park.close()
        await self.budgets.close()
        await self.queue.close()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.close()


@pytest.mark.spec("C-175")
async def test_a_delivery_is_deferred_and_its_inbox_held_while_no_token_is_left(world: World) -> None:
    world.apply(day=100)
    await world.spend(100)

    deferred = await world.park.refuses("ceo")

    assert isinstance(deferred, Defer)
    assert "the company for the day 2030-01-01" in deferred.reason
    assert "2030-01-02T00:00:00+00:00" in deferred.reason
    assert world.is_held()
    assert (await world.counter()).day.refused_at == world.clock.now()
    assert (await world.counter()).day.used == 100
    assert len(world.refused) == 1


@pytest.mark.spec("C-176")
async def test_one_park_is_one_refusal_however_many_deliveries_were_under_way(world: World) -> None:
    world.apply(seat={"week": 10})
    await world.spend(10)
    began = world.clock.now()

    for _ in range(3):
        assert await world.park.refuses("ceo") is not None
        await asyncio.sleep(60)

    assert (await world.seat_counter()).week.refused_at == began
    assert (await world.counter()).week.refused_at is None


async def test_a_seat_with_room_is_worked_whatever_anothers_budget_says(world: World) -> None:
    world.apply(seat={"day": 10})
    await world.spend(10)

    assert await world.park.refuses("cto") is None
    assert not world.is_held("cto")


async def test_a_seat_without_any_ceiling_costs_no_question(world: World) -> None:
    world.store.link.cut = True

    assert await world.park.refuses("ceo") is None


async def test_a_counter_that_cannot_be_read_parks_nothing(world: World) -> None:
    world.apply(day=1)
    await world.spend(5)
    world.store.link.cut = True

    assert await world.park.refuses("ceo") is None
    assert not world.is_held()


async def test_a_counter_that_does_not_answer_holds_a_delivery_up_for_a_second_at_most(world: World) -> None:
    world.apply(day=1)
    world.store.link.silent = True
    began_s = world.clock.elapsed_s()

    assert await world.park.refuses("ceo") is None
    assert world.clock.elapsed_s() - began_s <= 1.0


async def test_a_parked_seat_is_released_when_the_last_of_its_windows_turns_over(world: World) -> None:
    world.apply(day=100, seat={"week": 50})
    await world.spend(100)
    await world.park.refuses("ceo")
    # 2030-01-01 is a Tuesday: the day ends after one day, the week after six.
    await asyncio.sleep(6 * DAY_S - 60)
    was_held = world.is_held()

    await asyncio.sleep(120)

    assert was_held
    assert not world.is_held()
    assert await world.park.refuses("ceo") is None


async def test_a_raised_ceiling_releases_at_once_and_one_that_is_too_low_still_does_not(world: World) -> None:
    world.apply(day=100)
    await world.spend(100)
    await world.park.refuses("ceo")

    world.apply(day=99)
    await world.park.ceilings_changed()
    held_below = world.is_held()
    world.apply(day=101)
    await world.park.ceilings_changed()

    assert held_below
    assert not world.is_held()


async def test_a_zone_in_which_the_day_is_over_releases(world: World) -> None:
    world.apply(day=100, zone="Pacific/Honolulu")
    await world.spend(100)
    await world.park.refuses("ceo")

    world.apply(day=100, zone="Pacific/Kiritimati")
    await world.park.ceilings_changed()

    assert not world.is_held()


async def test_mail_that_was_deferred_comes_again_once_the_ceiling_is_raised(world: World) -> None:
    world.apply(day=100)
    await world.spend(100)
    worked: list[str] = []

    async def handle(delivery: Delivery) -> Outcome:
        deferred = await world.park.refuses("ceo")
        if deferred is None:
            worked.append(delivery.event.id)
            return Ack()
        return deferred

    await world.queue.subscribe(inbox_of("ceo"), handle)
    ids = SeededIds(1)
    work = TaskAssigned(agent_handle="ceo", task="Work")
    mail = new_event(work, trace=fresh_trace(ids), now=world.clock.now(), ids=ids)
    await world.queue.publish(inbox_of("ceo").topic, mail)
    await asyncio.sleep(3600)
    before = [*worked]

    world.apply(day=200)
    await world.park.ceilings_changed()
    await asyncio.sleep(1)

    assert before == []
    assert len(worked) == 1


async def test_a_ceiling_that_is_raised_while_a_delivery_is_judged_parks_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply(day=100)
    await world.spend(100)
    hold = world.queue.hold

    async def applied_meanwhile(subscription: Subscription, name: str) -> None:
        world.apply(day=200)
        await world.park.ceilings_changed()
        await hold(subscription, name)

    monkeypatch.setattr(world.queue, "hold", applied_meanwhile)

    assert await world.park.refuses("ceo") is None
    assert not world.is_held()


@pytest.mark.spec("E-047")
async def test_a_queue_that_takes_no_hold_has_the_delivery_deferred_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.apply(day=1)
    await world.spend(5)

    async def away(*_: object) -> None:
        raise Unavailable("the broker is away")

    monkeypatch.setattr(world.queue, "hold", away)

    assert isinstance(await world.park.refuses("ceo"), Defer)


async def test_a_seat_that_was_given_back_is_judged_anew_in_its_next_tenure(world: World) -> None:
    world.apply(day=1)
    await world.spend(5)
    await world.park.refuses("ceo")
    world.holds.forget("ceo")
    world.holds.open("ceo")

    await asyncio.sleep(3600)
    await world.park.refuses("ceo")

    assert world.is_held()
    assert len(world.refused) == 2
