"""What a person's pause does to a seat: at once, past restarts and moves, and never taken for lifted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crewlet.node.mailboxes import inbox_of
from tests.unit.node.seat_world import HEARTBEAT_S, World

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.close()


async def test_a_paused_seat_is_given_nothing_until_it_is_resumed_and_then_at_once(world: World) -> None:
    node = world.node("a")
    await node.start()
    await world.pause()
    await asyncio.sleep(0.1)

    await world.mail("m1")
    await asyncio.sleep(3600.0)
    untouched = world.waiting()
    await world.pauses.lift("ceo")
    await asyncio.sleep(0.1)

    assert untouched == [("m1", 0)]
    assert node.turns.done == ["m1"]


async def test_a_pause_lets_the_running_turn_end(world: World) -> None:
    node = world.node("a", rounds=30)
    await node.start()
    await world.mail("m1")
    await world.mail("m2")
    await asyncio.sleep(0.5)

    await world.pause()
    await asyncio.sleep(60.0)

    assert node.turns.done == ["m1"]
    assert node.turns.started == ["m1"]


@pytest.mark.spec("S-039")
async def test_a_paused_seat_is_held_before_its_new_holder_attaches_it(world: World) -> None:
    """Its holder is restarted; the mail that the pause kept waiting is not the first thing that the next one runs."""
    first = world.node("a")
    await first.start()
    await world.pause()
    await asyncio.sleep(0.1)
    await world.mail("m1")
    await first.host.release_all()

    second = world.node("b")
    await second.start()
    await asyncio.sleep(60.0)

    assert second.log.said == ["open tools", "attach reflect", "hold seat_paused", "take over journal", "attach inbox"]
    assert (second.host.held(), world.waiting()) == (("ceo",), [("m1", 0)])


async def test_a_seat_that_was_resumed_while_nobody_held_it_is_attached_free(world: World) -> None:
    node = world.node("a")
    await node.start()
    await world.pause()
    await asyncio.sleep(0.1)
    node.host.apply([])
    await asyncio.sleep(1.0)
    await world.pauses.lift("ceo")
    await asyncio.sleep(0.1)

    await node.host.release_all()
    second = world.node("b")
    await second.start()
    await world.mail("m1")
    await asyncio.sleep(0.1)

    assert second.turns.done == ["m1"]


@pytest.mark.spec("C-036")
async def test_while_the_pauses_are_unknown_a_delivery_is_deferred_and_no_turn_starts(world: World) -> None:
    """And once they are known it goes on, without waiting for a renew."""
    node = world.node("a")
    node.positions.link.cut = True
    await node.start()
    await world.mail("m1")
    await asyncio.sleep(3 * HEARTBEAT_S + 0.1)
    deferred = ([*node.turns.started], world.waiting(), bool(node.pausing.trouble))

    node.positions.link.cut = False
    await asyncio.sleep(6.0)

    assert deferred == ([], [("m1", 1)], True), "one delivery is what it costs, however long it lasts"
    assert node.turns.done == ["m1"]
    assert node.pausing.trouble == ""


async def test_a_seat_found_paused_once_the_pauses_are_known_is_held(world: World) -> None:
    await world.pause()
    node = world.node("a")
    node.positions.link.cut = True
    await node.start()
    node.positions.link.cut = False
    await asyncio.sleep(6.0)

    await world.mail("m1")
    await asyncio.sleep(60.0)

    assert world.waiting() == [("m1", 0)]
    assert node.turns.started == []


async def test_an_outage_lifts_no_pause(world: World) -> None:
    node = world.node("a")
    await node.start()
    await world.pause()
    await asyncio.sleep(0.1)
    node.positions.link.cut = True

    await world.mail("m1")
    await asyncio.sleep(3600.0)

    assert world.waiting() == [("m1", 0)]
    assert "have not been followed" in node.pausing.trouble


@pytest.mark.spec("E-132", "S-080")
async def test_a_pause_that_stops_ends_the_running_turn_at_its_next_check_for_good(world: World) -> None:
    node = world.node("a", rounds=100)
    await node.start()
    await world.mail("m1")
    await asyncio.sleep(0.5)

    await world.pause(stop_running=True)
    await asyncio.sleep(1.0)
    stopped = [*node.log.said]
    await world.pauses.lift("ceo")
    await asyncio.sleep(60.0)

    assert stopped[-1] == "StoppedByPerson m1"
    assert node.turns.started == ["m1"]
    assert (world.waiting(), await node.ledger.worked("ceo", ["m1"])) == ([], {"m1"})


async def test_a_pause_that_comes_to_stop_what_runs_ends_the_turn_too(world: World) -> None:
    node = world.node("a", rounds=100)
    await node.start()
    await world.mail("m1")
    await asyncio.sleep(0.5)
    await world.pause()
    await asyncio.sleep(5.0)
    went_on = "StoppedByPerson m1" not in node.log.said

    await world.pause(stop_running=True)
    await asyncio.sleep(1.0)

    assert went_on
    assert node.log.said[-1] == "StoppedByPerson m1"


async def test_a_stop_that_was_lifted_before_the_turn_looked_is_a_stop_and_spares_the_next_turn(world: World) -> None:
    node = world.node("a", rounds=3)
    node.turns.round_s = 10.0
    await node.start()
    await world.mail("m1")
    await asyncio.sleep(1.0)

    await world.pause(stop_running=True)
    await asyncio.sleep(1.0)
    await world.pauses.lift("ceo")
    await asyncio.sleep(10.0)
    await world.mail("m2")
    await asyncio.sleep(60.0)

    assert "StoppedByPerson m1" in node.log.said
    assert node.turns.done == ["m2"]


async def test_a_pause_reaches_a_delivery_that_waits_for_a_slot(world: World) -> None:
    node = world.node("a", slots=1)
    await node.start()
    await node.gate.enter()
    await world.mail("m1")
    await asyncio.sleep(0.1)

    await world.pause()
    await asyncio.sleep(0.1)
    node.gate.leave()
    await asyncio.sleep(1.0)
    kept = world.waiting()
    await world.pauses.lift("ceo")
    await asyncio.sleep(0.1)

    assert [event_id for event_id, _ in kept] == ["m1"]
    assert node.turns.done == ["m1"]


async def test_a_seat_that_drains_is_not_set_to_work_by_a_resume(world: World) -> None:
    node = world.node("a")
    await node.start()
    await world.pause()
    await asyncio.sleep(0.1)
    await world.mail("m1")
    node.host.drain()
    await node.queue.quiesce(inbox_of("ceo"))

    await world.pauses.lift("ceo")
    await asyncio.sleep(1.0)

    assert world.waiting() == [("m1", 0)]


async def test_a_paused_seat_is_its_own_affair(world: World) -> None:
    node = world.node("a")
    await node.start("ceo", "cto")
    await world.pause(stop_running=True)

    await world.mail("m1", "cto")
    await asyncio.sleep(0.1)

    assert node.turns.done == ["m1"]
