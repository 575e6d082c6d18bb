"""How many turns run at once: so many on each node, whatever the company has of both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crewlet.base import limits
from tests.unit.node.companies import acme, source
from tests.unit.node.seat_world import SmallNode, World

pytestmark = pytest.mark.virtual_time

CEILING = limits.MAX_CONCURRENT_TURNS
HANDLES = [f"s{number}" for number in range(2 * (CEILING + 1))]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.close()


async def working(world: World, name: str) -> SmallNode:
    """A node whose turns take a minute."""
    node = world.node(name, rounds=60, slots=CEILING)
    node.company = source(acme(roles=[{"name": handle, "handle": handle} for handle in HANDLES], units=[]), {})
    await node.start(*HANDLES)
    return node


@pytest.mark.slow
@pytest.mark.spec("C-204")
async def test_each_node_runs_as_many_turns_as_it_may_and_the_next_one_waits_in_it(world: World) -> None:
    nodes = [await working(world, name) for name in ("a", "b")]
    await asyncio.sleep(300.0)
    held = [len(node.host.held()) for node in nodes]

    for handle in HANDLES:
        await world.mail(f"m-{handle}", handle)
    await asyncio.sleep(5.0)
    running = [len(node.turns.started) for node in nodes]
    await asyncio.sleep(60.0)

    assert held == [CEILING + 1] * 2
    assert running == [CEILING] * 2
    assert [len(node.turns.started) for node in nodes] == held
    assert {headroom for node in nodes for headroom in node.turns.headrooms} == {limits.MAX_DELIVER - 1}, (
        "none handed back"
    )
