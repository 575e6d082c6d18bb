"""Establishing a seat and giving it back: the steps, their order, and what is left when one of them fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.node.mailboxes import inbox_of, reflect_of
from crewlet.node.seat_tenure import SeatStep, SeatTenure
from tests.unit.node.seat_world import HEARTBEAT_S, TTL_S, SmallNode, World

pytestmark = pytest.mark.virtual_time

ESTABLISHED = ["open tools", "attach reflect", "take over journal", "attach inbox"]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.close()


@pytest.fixture
async def node(world: World) -> SmallNode:
    return world.node("a")


@pytest.mark.spec("S-034")
async def test_a_seat_is_established_step_by_step_and_its_inbox_last(world: World, node: SmallNode) -> None:
    await node.queue.ensure_subscription(inbox_of("ceo"))
    await world.mail("m1")

    await node.start()
    await asyncio.sleep(0.1)

    assert node.log.said == [*ESTABLISHED, "turn m1"]
    assert node.journal.epochs == [1]


async def test_the_places_of_subsystems_to_come_are_kept_in_the_order(node: SmallNode) -> None:
    steps = [step.name for step in node.hooks.steps]

    assert steps == ["tool_servers", "memory", "reflection", "sandbox", "holds", "journal", "inbox"]


class Counted:
    """A step that knows which seats have it."""

    def __init__(self, step: SeatStep) -> None:
        self.name = step.name
        self.seats: set[str] = set()
        self._step = step

    async def take(self, tenure: SeatTenure) -> None:
        self.seats.add(tenure.handle)
        await self._step.take(tenure)

    async def give_back(self, tenure: SeatTenure) -> None:
        await self._step.give_back(tenure)
        self.seats.discard(tenure.handle)


class Owners:
    """Two nodes, and what each of them has of each seat; the first one reaches the store throughout."""

    seats = ("ceo", "cto", "eng")

    def __init__(self, world: World) -> None:
        self.first, self.second = world.node("a"), world.node("b")
        self._steps: dict[str, tuple[Counted, ...]] = {}
        for name, node in (("a:0", self.first), ("b:1", self.second)):
            self._steps[name] = node.hooks.steps = tuple(Counted(step) for step in node.hooks.steps)

    async def whole(self, *, rest_s: float) -> dict[str, set[str]]:
        """Which seats each node has all of, once it is at rest; whatever it has a part of fails the test."""
        await asyncio.sleep(rest_s)
        owners = {lease.resource: lease.owner for lease in await self.first.leases.held("seat")}
        found: dict[str, set[str]] = {}
        for name, node in (("a:0", self.first), ("b:1", self.second)):
            for handle in self.seats:
                facts = {
                    "lease": owners.get(f"seat:{handle}") == name,
                    "grant": node.host.epoch_of(handle) is not None,
                    "admission": node.host.may_start(handle) is not None,
                    "mail": node.queue.attached(inbox_of(handle)),
                    "finished turns": node.queue.attached(reflect_of(handle)),
                    **{step.name: handle in step.seats for step in self._steps[name]},
                }
                assert len({*facts.values()}) == 1, (name, handle, facts)
                found.setdefault(name, set()).update([handle] if facts["lease"] else [])
        return found


@pytest.mark.spec("S-001")
async def test_a_node_has_all_of_a_seat_or_nothing_of_it(world: World) -> None:
    """Lease, grant, tools, mail, and the place where what its boxes bring will be handled go together."""
    nodes = Owners(world)
    await nodes.first.start(*nodes.seats)
    alone = await nodes.whole(rest_s=20)

    await nodes.second.start(*nodes.seats)
    shared = await nodes.whole(rest_s=60)
    nodes.first.host.withdraw("a test")
    given_back = await nodes.whole(rest_s=30)
    nodes.first.host.serve_again()
    shared_again = await nodes.whole(rest_s=60)
    for store in nodes.second.stores.values():
        store.link.cut = True
    lapsed = await nodes.whole(rest_s=2 * TTL_S)

    everything = {*nodes.seats}
    assert (alone["a:0"], given_back["b:1"], lapsed["a:0"]) == (everything, everything, everything)
    for divided in (shared, shared_again):
        assert divided["a:0"] | divided["b:1"] == everything
        assert divided["a:0"]
        assert divided["b:1"]


@pytest.mark.parametrize("error", [StartRefused("no"), Unavailable("away"), OSError("gone"), KeyError("a defect")])
@pytest.mark.parametrize("step", ESTABLISHED)
async def test_a_step_that_fails_leaves_the_lease_free_and_nothing_attached(
    node: SmallNode, step: str, error: Exception
) -> None:
    node.log.broken = {step: error}

    await node.start()

    assert await node.lease() is None
    assert node.host.held() == ()
    assert not any(node.queue.attached(mailbox) for mailbox in (inbox_of("ceo"), reflect_of("ceo")))
    assert node.log.said[-1] == "close tools"


async def test_the_steps_before_the_one_that_failed_are_undone_in_reverse(node: SmallNode) -> None:
    node.log.broken = {"attach inbox": StartRefused("no")}

    await node.start()

    assert node.log.said == [*ESTABLISHED, "detach reflect", "close tools"]


@pytest.mark.spec("S-036")
async def test_a_step_that_cannot_be_undone_spares_no_other_and_is_tried_again(node: SmallNode) -> None:
    """The seat's children die with the lease, whatever else does not let go; the lease waits for all of it."""
    await node.start()
    node.log.said.clear()
    node.log.broken = {"detach inbox": OSError("stuck"), "close tools": OSError("a child lives")}

    node.host.apply([])
    await asyncio.sleep(1.0)
    stuck = await node.lease()
    node.log.broken = {}
    await asyncio.sleep(HEARTBEAT_S)

    assert stuck is not None
    assert node.log.said == ["detach inbox", "detach reflect", "close tools", "close tools"]
    assert await node.lease() is None


@pytest.mark.spec("S-036", "S-040")
async def test_a_voluntary_release_lets_the_turn_end_then_detaches_then_gives_the_lease_back(world: World) -> None:
    node = world.node("a", rounds=3)
    await node.start()
    await world.mail("m1")
    await asyncio.sleep(0.5)
    node.log.said.clear()

    node.host.apply([])
    await asyncio.sleep(1.0)
    during = await node.lease()
    await asyncio.sleep(2.0)

    assert during is not None
    assert node.turns.done == ["m1"]
    assert node.log.said == ["detach inbox", "detach reflect", "close tools"]
    assert (world.waiting(), await node.lease()) == ([], None)


@pytest.mark.spec("S-040")
async def test_a_release_waits_only_so_long_and_ends_the_grant_of_what_still_runs(world: World) -> None:
    node = world.node("a", rounds=1000, release_wait_s=60.0)
    await node.start()
    await world.mail("m1")
    await asyncio.sleep(0.5)

    with capture_logs() as said:
        node.host.apply([])
        await asyncio.sleep(59.0)
        waiting = node.queue.attached(inbox_of("ceo"))
        await asyncio.sleep(2.5)

    assert waiting
    assert [each["event"] for each in said].count("seat_released_role_gone") == 1, "each pass asks; it is begun once"
    assert await node.lease() is None
    assert node.log.said[-1] == "Fenced m1"


async def test_a_node_that_waits_as_long_as_it_takes_ends_no_turn(world: World) -> None:
    node = world.node("a", rounds=100, release_wait_s=None)
    await node.start()
    await world.mail("m1")
    await asyncio.sleep(0.5)

    await node.host.release_all()

    assert node.turns.done == ["m1"]


@pytest.mark.spec("S-041", "S-043", "S-050", "S-075")
async def test_a_fenced_release_detaches_first_and_the_successor_gets_the_very_delivery(world: World) -> None:
    """The turn is left to its fence, nothing is published again, and one delivery is what the handoff costs."""
    first, second = world.node("a", rounds=10), world.node("b", rounds=1)
    first.turns.round_s = 7.0
    await first.start()
    await world.mail("m1")
    await asyncio.sleep(0.5)
    first.log.said.clear()
    for store in first.stores.values():
        store.link.cut = True

    await second.start()
    await asyncio.sleep(TTL_S + HEARTBEAT_S)

    assert first.log.said[0] == "detach inbox"
    assert "Fenced m1" in first.log.said
    assert (second.turns.done, second.turns.headrooms) == (["m1"], [limits.MAX_DELIVER - 2])
    assert world.waiting() == []


@pytest.mark.spec("S-041")
async def test_a_lease_that_is_lost_while_its_release_waits_for_a_turn_ends_the_wait(world: World) -> None:
    first, second = world.node("a", rounds=10, release_wait_s=3600.0), world.node("b", rounds=1)
    first.turns.round_s = 200.0
    await first.start()
    await world.mail("m1")
    await asyncio.sleep(0.5)
    first.host.apply([])
    await asyncio.sleep(0.5)
    for store in first.stores.values():
        store.link.cut = True

    await second.start()
    await asyncio.sleep(2 * TTL_S)

    assert first.log.said[-3:] == ["detach inbox", "detach reflect", "close tools"], "its turn still asks its model"
    assert second.turns.done == ["m1"]


async def test_what_a_turn_that_outlasts_the_wait_held_is_free_for_its_successor_at_once(world: World) -> None:
    node = world.node("a", rounds=1000, release_wait_s=60.0)
    await node.start()
    await world.mail("m1")
    await asyncio.sleep(0.5)

    node.host.apply([])
    await asyncio.sleep(62.0)

    assert (world.waiting(), world.broker.held(inbox_of("ceo"))) == ([("m1", 1)], [])


async def test_a_delivery_that_came_while_a_seat_was_established_in_vain_is_free_at_once(world: World) -> None:
    node = world.node("a")
    await node.queue.ensure_subscription(inbox_of("ceo"))
    await world.mail("m1")
    node.log.broken = {"spawned": StartRefused("no")}

    await node.start()

    assert await node.lease() is None
    assert (node.turns.started, world.broker.held(inbox_of("ceo"))) == ([], [])


@pytest.mark.spec("S-047")
async def test_only_the_end_of_its_process_frees_a_seat_that_is_never_let_go(world: World) -> None:
    first, second = world.node("a"), world.node("b")
    await first.start()
    first.log.broken = {"close tools": OSError("a child lives")}
    await second.start()

    first.host.apply([])
    await asyncio.sleep(3600.0)
    kept = await second.lease()
    first.die()
    await asyncio.sleep(60.0)

    assert kept is not None
    assert kept.preferred == "a"
    assert second.host.held() == ("ceo",)
    first.log.broken = {}
