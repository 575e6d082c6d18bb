"""What a node says of the token windows, and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crewlet.base.errors import Unavailable
from crewlet.events import Event
from crewlet.events.types import BudgetMeter, BudgetMeters
from crewlet.node.budget_feed import BudgetFeed
from crewlet.node.budget_reading import BudgetReading
from crewlet.node.turn_meter import TurnMeters
from crewlet.testing import SeededIds
from crewlet.turns import BudgetExhausted
from tests.unit.node.budget_world import BudgetWorld

pytestmark = pytest.mark.virtual_time


class World(BudgetWorld):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[Event] = []
        self.reading = BudgetReading(self.budgets, self.in_force, self.clock)
        self.feed = BudgetFeed(self.reading, self._publish, self.clock, SeededIds(1))
        self.meters = TurnMeters(self.budgets, self.clock, self.feed.refused)

    async def _publish(self, topic: str, event: Event) -> Event:
        assert topic == "crewlet.events.budget_meters"
        self.said.append(event)
        return event

    @property
    def last(self) -> tuple[BudgetMeter, ...]:
        body = self.said[-1].data
        assert isinstance(body, BudgetMeters)
        return body.meters

    async def turned_away(self) -> None:
        with pytest.raises(BudgetExhausted):
            await self.meters.meter(self.company, "ceo").admit()
        await asyncio.sleep(1)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.feed.close()
    await world.budgets.close()


@pytest.mark.spec("E-142")
async def test_the_tick_is_fixed(world: World) -> None:
    assert world.feed.chore().every_s == 15.0


@pytest.mark.spec("E-142")
async def test_every_window_with_a_ceiling_is_told_with_its_state_those_that_refuse_first(world: World) -> None:
    world.apply(day=1000, month=100, seat={"day": 111, "week": 112})
    await world.spend(100)

    await world.feed.say()

    assert [(each.agent_handle, each.period, each.used, each.max, each.state) for each in world.last] == [
        ("", "month", 100, 100, "refusing"),
        ("ceo", "day", 100, 111, "near"),
        ("", "day", 100, 1000, "ok"),
        ("ceo", "week", 100, 112, "ok"),
    ]


@pytest.mark.spec("E-142")
async def test_the_first_refusal_of_a_window_is_told_at_once_and_the_next_ones_wait_for_the_tick(world: World) -> None:
    world.apply(day=100)
    await world.spend(100)

    await world.turned_away()
    first = len(world.said)
    await world.turned_away()
    await world.turned_away()

    assert (first, len(world.said)) == (1, 1)
    assert [each.state for each in world.last] == ["refusing"]


async def test_a_window_that_turned_over_and_refuses_again_is_told_at_once_again(world: World) -> None:
    world.apply(day=100)
    await world.spend(100)
    await world.turned_away()
    await asyncio.sleep(24 * 3600)
    await world.feed.say()
    said = len(world.said)
    await world.spend(100, lane="next day")

    await world.turned_away()

    assert len(world.said) == said + 1


async def test_nothing_is_told_while_nothing_has_a_ceiling_but_once_when_the_last_one_went(world: World) -> None:
    await world.feed.say()
    silent = len(world.said)
    world.apply(day=100)
    await world.feed.say()
    world.apply()
    await world.feed.say()
    await world.feed.say()

    assert (silent, len(world.said)) == (0, 2)
    assert world.last == ()


async def test_counters_that_cannot_be_read_are_told_as_nothing_and_not_as_unspent(world: World) -> None:
    world.apply(day=100)
    world.store.link.cut = True

    with pytest.raises(Unavailable):
        await world.feed.say()

    assert world.said == []


async def test_a_seat_is_refused_by_its_own_window_and_by_the_companys(world: World) -> None:
    world.apply(day=1000, seat={"day": 100})
    await world.spend(100)
    await world.feed.say()
    by_own = [world.feed.refuses(world.agent_id(handle)) for handle in ("ceo", "cto")]
    await world.spend(900, "cto", lane="other")
    await world.feed.say()
    by_company = [world.feed.refuses(world.agent_id(handle)) for handle in ("ceo", "cto")]

    assert (by_own, by_company) == ([True, False], [True, True])


async def test_a_view_without_counters_says_that_it_knows_nothing_of_what_was_spent(world: World) -> None:
    world.apply(day=100)
    world.store.link.cut = True

    view = await world.reading.all()

    assert not view.durable
    assert {(window.used, window.state) for scope in view.scopes for window in scope.windows} == {(None, "unknown")}
    assert view.scopes[0].windows[0].max == 100


async def test_a_view_has_every_scope_and_every_window_capped_or_not(world: World) -> None:
    world.apply(week=100)
    await world.spend(99)

    view = await world.reading.all()

    assert view.durable
    assert [scope.handle for scope in view.scopes] == ["", "ceo", "cto"]
    assert [(w.period, w.label, w.used, w.max, w.state) for w in view.scopes[0].windows] == [
        ("day", "2030-01-01", 99, None, "ok"),
        ("week", "2030-W01", 99, 100, "near"),
        ("month", "2030-01", 99, None, "ok"),
    ]
    assert [window.used for window in view.scopes[2].windows] == [0, 0, 0]
