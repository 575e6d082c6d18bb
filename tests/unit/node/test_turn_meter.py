"""A turn's replies against the ceilings of its company and its seat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from crewlet.base.errors import Fenced, Unavailable
from crewlet.inbox import RecordedCharge
from crewlet.llm import Usage
from crewlet.node.turn_meter import TurnMeters
from crewlet.testing import VirtualClock
from crewlet.turns import BudgetExhausted, Meter
from tests.unit.node.budget_world import BudgetWorld, spent

pytestmark = pytest.mark.virtual_time


class World(BudgetWorld):
    @property
    def meters(self) -> TurnMeters:
        return TurnMeters(self.budgets, self.clock, self.refused.append)

    def meter(self, handle: str = "ceo") -> Meter:
        return self.meters.meter(self.company, handle)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.budgets.close()


def open_fence() -> None:
    return None


async def test_a_reply_counts_with_all_it_read_and_wrote_in_the_company_and_in_the_seat(world: World) -> None:
    meter = world.meter()

    await meter.charge(spent(1, tokens=100), open_fence)
    await meter.charge(spent(2, tokens=50), open_fence)
    await meter.charge(spent(2, tokens=50), open_fence)

    company, seat = await world.counter(), await world.seat_counter()
    assert (company.day.used, company.week.used, company.month.used) == (150, 150, 150)
    assert seat.day.used == 150


async def test_a_recorded_reply_is_counted_once_whoever_counts_it_again_and_refuses_nothing(world: World) -> None:
    world.apply(day=100)
    await world.meter().charge(spent(1, tokens=98), open_fence)
    again, last = (
        RecordedCharge(lane="turn-1", number=number, usage=Usage(input_tokens=tokens - 2, output_tokens=2))
        for number, tokens in ((1, 98), (2, 50))
    )

    for charge in (again, last, last):
        await world.meters.recharge(world.company, "ceo", charge)

    assert ((await world.counter()).day.used, (await world.seat_counter()).day.used) == (148, 148)


async def test_a_recorded_reply_of_a_seat_that_left_the_company_is_not_said_to_be_counted(world: World) -> None:
    charge = RecordedCharge(lane="turn-1", number=1, usage=Usage(input_tokens=8, output_tokens=2))

    with pytest.raises(Unavailable):
        await world.meters.recharge(world.company, "nobody", charge)


@pytest.mark.parametrize(("company", "seat", "scope"), [(100, None, "org"), (1000, {"day": 100}, "agent:")])
async def test_a_refused_reply_is_counted_and_names_the_window_that_refused_it(
    world: World, company: int, seat: dict[str, int] | None, scope: str
) -> None:
    world.apply(day=company, seat=seat)
    meter = world.meter()
    await meter.charge(spent(1, tokens=98), open_fence)

    with pytest.raises(BudgetExhausted) as caught:
        await meter.charge(spent(2, tokens=3), open_fence)

    (window,) = caught.value.refused
    assert window.scope.startswith(scope)
    assert (window.period, window.label, window.spent, window.ceiling) == ("day", "2030-01-01", 101, 100)
    assert window.resets_at == datetime(2030, 1, 2, tzinfo=UTC)
    assert (await world.counter()).day.used == 101
    assert world.refused == [(window,)]


@pytest.mark.spec("C-175")
async def test_no_call_is_made_once_no_token_is_left_and_the_refusal_is_recorded(world: World) -> None:
    world.apply(day=100)
    await world.meter().charge(spent(1, tokens=100), open_fence)
    meter = world.meter()

    with pytest.raises(BudgetExhausted) as caught:
        await meter.admit()

    counter = await world.counter()
    assert (counter.day.used, counter.day.refused_at) == (100, world.clock.now())
    assert [each.period for each in caught.value.refused] == ["day"]
    assert world.refused == [caught.value.refused]


@pytest.mark.spec("C-176")
async def test_a_turn_records_a_refusal_once_a_window_and_the_next_turn_its_own(world: World) -> None:
    world.apply(day=100)
    await world.spend(100)
    began = world.clock.now()
    first, second = world.meter(), world.meter()
    recorded: list[float] = []

    for meter in (first, first, first, second):
        await asyncio.sleep(60)
        with pytest.raises(BudgetExhausted):
            await meter.admit()
        refused_at = (await world.counter()).day.refused_at
        assert refused_at is not None
        recorded.append((refused_at - began).total_seconds())

    assert recorded == [60, 60, 60, 240]


async def test_a_call_is_made_while_a_token_is_left_in_every_window(world: World) -> None:
    world.apply(day=100, week=99, seat={"month": 101})
    await world.spend(98)

    await world.meter().admit()

    assert world.refused == []


async def test_a_window_that_turned_over_has_room_though_this_process_remembers_it_full(world: World) -> None:
    world.apply(day=100)
    await world.spend(100)
    world.clock = VirtualClock(started=datetime(2030, 1, 2, tzinfo=UTC))

    await world.meter().admit()

    assert world.refused == []


async def test_a_call_asks_nothing_of_the_store_while_this_process_knows_the_counters(world: World) -> None:
    world.apply(day=100, seat={"day": 100})
    meter = world.meter()
    await meter.charge(spent(1), open_fence)
    world.store.link.cut = True

    await meter.admit()

    assert world.refused == []


async def test_a_counter_that_cannot_be_read_stops_no_call(world: World) -> None:
    world.apply(day=1)
    world.store.link.cut = True

    await world.meter().admit()

    assert world.refused == []


async def test_a_reply_that_cannot_be_counted_is_an_outage_and_never_out_of_budget(world: World) -> None:
    world.apply(day=1)
    world.store.link.cut = True

    with pytest.raises(Unavailable):
        await world.meter().charge(spent(1), open_fence)

    assert world.refused == []


async def test_a_seat_that_moved_meanwhile_leaves_the_charge_to_its_new_holder(world: World) -> None:
    world.store.link.cut = True
    meter = world.meter()

    def closed() -> None:
        raise Fenced("the seat moved")

    with pytest.raises(Unavailable):
        await meter.charge(spent(1), closed)
    world.store.link.cut = False
    successor = world.meter()
    await successor.charge(spent(1), open_fence)

    assert (await world.counter()).day.used == 10


@pytest.mark.spec("C-188", "S-210")
async def test_a_turn_across_midnight_spends_on_both_days_by_the_clock_that_it_began_with() -> None:
    world = World(VirtualClock(started=datetime(2030, 1, 31, 22, 59, tzinfo=UTC)))
    world.apply(zone="Europe/Paris")
    meter = world.meter()
    await meter.charge(spent(1, tokens=10), open_fence)
    before = await world.counter()
    world.apply(zone="America/New_York")

    await asyncio.sleep(120)
    await meter.charge(spent(2, tokens=5), open_fence)

    world.apply(zone="Europe/Paris")
    after = await world.counter()
    await world.budgets.close()
    assert [(day.label, day.used) for day in (before.day, after.day)] == [("2030-01-31", 10), ("2030-02-01", 5)]
    assert [(month.label, month.used) for month in (before.month, after.month)] == [("2030-01", 10), ("2030-02", 5)]
    assert after.week.used == 15


async def test_what_remains_is_the_room_of_the_fullest_window(world: World) -> None:
    world.apply(day=100, month=1000, seat={"week": 90})
    meter = world.meter()
    await meter.charge(spent(1, tokens=40), open_fence)

    assert await meter.remaining() == 50


async def test_a_seat_without_ceilings_and_one_whose_counter_is_out_of_reach_have_no_known_rest(world: World) -> None:
    free = await world.meter().remaining()
    world.apply(day=100)
    world.store.link.cut = True

    assert (free, await world.meter().remaining()) == (None, None)


async def test_the_lanes_of_a_turn_that_ended_are_given_to_be_forgotten(world: World) -> None:
    meters = TurnMeters(world.budgets, world.clock, world.refused.append)
    await meters.meter(world.company, "ceo").charge(spent(1), open_fence)

    meters.ended("turn-1", world.agent_id())
    await world.budgets.close()

    assert (await world.counter()).lanes == {}
