"""What comes before a seat's inbox: in order, once, when the seat admits turns and nothing holds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crewlet.base.errors import Fenced, Unavailable
from crewlet.node.inbox_front import FrontWork
from crewlet.seats import PlacedSeat
from tests.unit.node.seat_world import HEARTBEAT_S, SmallNode, World

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.close()


def left(node: SmallNode, name: str, *, takes_s: float = 1.0, error: Exception | None = None) -> FrontWork:
    async def work() -> None:
        node.log.said.append(f"begin {name}")
        await asyncio.sleep(takes_s)
        node.log.said.append(f"end {name}")
        if error is not None:
            raise error

    return work


async def test_what_a_predecessor_left_is_done_in_order_before_any_mail(world: World) -> None:
    node = world.node("a")
    node.journal.left = [left(node, "one"), left(node, "two")]
    await node.start()
    await world.mail("m1")

    await asyncio.sleep(3.0)

    assert node.log.said[-5:] == ["begin one", "end one", "begin two", "end two", "turn m1"]


async def test_it_waits_for_no_delivery(world: World) -> None:
    node = world.node("a")
    node.journal.left = [left(node, "one")]

    await node.start()
    await asyncio.sleep(0.1)

    assert node.log.said[-1] == "begin one"


@pytest.mark.spec("S-038")
async def test_it_begins_once_the_seat_admits_turns_and_not_a_heartbeat_later(world: World) -> None:
    node, admitted = world.node("a"), list[tuple[str, float]]()
    node.admitted.tell(lambda handle: admitted.append((handle, world.clock.elapsed_s())))
    node.journal.left = [left(node, "one")]

    await node.start()
    await asyncio.sleep(0.01)

    assert [handle for handle, _ in admitted] == ["ceo"]
    assert node.log.said[-1] == "begin one"


@pytest.mark.spec("S-038")
async def test_the_first_renew_after_an_outage_is_told_and_no_other(world: World) -> None:
    node, admitted = world.node("a"), list[str]()
    await node.start()
    node.admitted.tell(admitted.append)
    await asyncio.sleep(2 * HEARTBEAT_S)
    while_healthy = [*admitted]
    for store in node.stores.values():
        store.link.cut = True
    await asyncio.sleep(1.5 * HEARTBEAT_S)
    for store in node.stores.values():
        store.link.cut = False
    await asyncio.sleep(HEARTBEAT_S)

    assert (while_healthy, admitted) == ([], ["ceo"])


async def test_it_waits_for_a_hold_like_any_work(world: World) -> None:
    await world.pause()
    node = world.node("a")
    node.journal.left = [left(node, "one")]
    await node.start()
    await world.mail("m1")
    await asyncio.sleep(60.0)
    while_paused = [*node.log.said]

    await world.pauses.lift("ceo")
    await asyncio.sleep(2.0)

    assert while_paused[-1] == "attach inbox"
    assert node.log.said[-3:] == ["begin one", "end one", "turn m1"]


async def test_it_waits_until_it_is_known_that_nobody_paused_the_seat(world: World) -> None:
    node = world.node("a")
    node.journal.left = [left(node, "one")]
    node.positions.link.cut = True
    await node.start()
    await asyncio.sleep(60.0)
    while_unknown = [*node.log.said]

    node.positions.link.cut = False
    await asyncio.sleep(6.0)

    assert while_unknown[-1] == "attach inbox"
    assert node.log.said[-1] == "end one"


async def test_what_fails_costs_no_other_and_the_mail_comes_after(world: World) -> None:
    node = world.node("a")
    node.journal.left = [left(node, "one", error=Fenced("not here")), left(node, "two")]
    await node.start()
    await world.mail("m1")

    await asyncio.sleep(3.0)

    assert node.log.said[-3:] == ["begin two", "end two", "turn m1"]


async def test_what_is_unavailable_is_done_again_and_the_mail_comes_after_it(world: World) -> None:
    node, tries = world.node("a"), iter([Unavailable("away"), Unavailable("away"), None])

    async def work() -> None:
        if (error := next(tries)) is not None:
            raise error
        node.log.said.append("done at last")

    node.journal.left = [work]
    await node.start()
    await world.mail("m1")

    await asyncio.sleep(10.0)

    assert node.log.said[-2:] == ["done at last", "turn m1"]


async def test_what_is_unavailable_for_good_holds_no_release_up(world: World) -> None:
    node = world.node("a")
    node.journal.left = [left(node, "one", takes_s=0.0, error=Unavailable("away"))]
    await node.start()
    await asyncio.sleep(60.0)
    began_s = world.clock.elapsed_s()

    await node.host.release_all()

    assert world.clock.elapsed_s() - began_s < 1.0
    assert node.log.said[-1] == "close tools"


async def test_a_defect_in_it_leaves_the_seat_to_its_mail(world: World) -> None:
    node = world.node("a")
    node.journal.left = [left(node, "one", error=KeyError("a defect"))]
    await node.start()
    await world.mail("m1")

    await asyncio.sleep(3.0)

    assert node.turns.done == ["m1"]


async def test_a_release_lets_what_runs_end_and_begins_nothing_more(world: World) -> None:
    node = world.node("a")
    node.journal.left = [left(node, "one", takes_s=5.0), left(node, "two")]
    await node.start()
    await asyncio.sleep(0.1)

    await node.host.release_all()

    assert "end one" in node.log.said
    assert "begin two" not in node.log.said
    assert node.log.said[-3:] == ["detach inbox", "detach reflect", "close tools"]


async def test_what_did_not_begin_before_a_release_begins_in_the_next_tenure_alone(world: World) -> None:
    await world.pause()
    node = world.node("a")
    node.journal.left = [left(node, "one")]
    await node.start()
    node.host.apply([])
    await asyncio.sleep(1.0)
    left_over = [task for task in asyncio.all_tasks() if task.get_name() == "seat_fronts:front ceo"]
    node.host.apply([PlacedSeat("ceo")])
    await asyncio.sleep(10.0)

    await world.pauses.lift("ceo")
    await asyncio.sleep(2.0)

    assert left_over == []
    assert node.journal.epochs == [1, 2]
    assert node.log.said.count("begin one") == 1
