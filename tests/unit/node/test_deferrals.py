"""A delivery that this node is the wrong one for: handed back at once, and the consumer stopped until it may work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crewlet.base import limits
from crewlet.node.mailboxes import inbox_of
from tests.unit.node.seat_world import HEARTBEAT_S, TTL_S, SmallNode, World

pytestmark = pytest.mark.virtual_time

ONE_DEARER = [limits.MAX_DELIVER - 2]
"""The headroom of a message that was handed back once."""


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.close()


def cut_off(node: SmallNode, *, cut: bool) -> None:
    for store in node.stores.values():
        store.link.cut = cut


@pytest.mark.spec("S-048", "S-049", "S-051", "S-052")
async def test_a_seat_that_is_not_provably_ours_hands_its_mail_back_once_and_goes_on_at_the_next_good_renew(
    world: World,
) -> None:
    """Without that edge it would be owned, attached and deaf; without the stop it would spend a delivery a lap."""
    node = world.node("a")
    await node.start()
    await asyncio.sleep(1.0)
    world.clock.slept_s = HEARTBEAT_S + 5
    cut_off(node, cut=True)

    await world.mail("m1")
    await asyncio.sleep(0.1)
    deferred = (world.waiting(), world.broker.held(inbox_of("ceo")), node.queue.attached(inbox_of("ceo")))
    cut_off(node, cut=False)
    await asyncio.sleep(HEARTBEAT_S)

    assert deferred == ([("m1", 1)], [], True)
    assert node.turns.headrooms == ONE_DEARER
    assert world.waiting() == []


@pytest.mark.spec("S-051")
async def test_a_node_whose_configuration_is_behind_hands_its_mail_back(world: World) -> None:
    node = world.node("a")
    node.posture.serves = False
    await node.start()

    await world.mail("m1")
    await asyncio.sleep(0.1)
    deferred = world.waiting()
    node.posture.serves = True
    await asyncio.sleep(HEARTBEAT_S)

    assert deferred == [("m1", 1)]
    assert node.turns.headrooms == ONE_DEARER


@pytest.mark.spec("S-051", "S-082")
async def test_a_turn_that_its_fence_ends_is_handed_back_and_did_not_fail(world: World) -> None:
    """The grant ends with the lease, to the second; the turn's next look comes before the release does."""
    first, second = world.node("a", rounds=60), world.node("b", rounds=1)
    await first.start()
    await world.mail("m1")
    await asyncio.sleep(0.5)
    cut_off(first, cut=True)
    await second.start()

    await asyncio.sleep(TTL_S + HEARTBEAT_S)

    assert "Fenced m1" in first.log.said
    assert (second.turns.done, second.turns.headrooms) == (["m1"], ONE_DEARER)
    assert (world.waiting(), world.broker.dead_letters()) == ([], [])
