"""One node's hand on the pointer to the company's document: published once, moved, followed, told of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.base.errors import ConfigError, Conflict, Problem, Unavailable
from crewlet.base.fence import ServingPosture
from crewlet.coordination import ActiveConfig, Revision
from crewlet.coordination.slots import CONFIG, STATUS
from crewlet.node.fleet_company import FleetCompany, FleetCompanyParts
from crewlet.testing import SeededIds, VirtualClock

pytestmark = pytest.mark.virtual_time

SOON_S = 0.2


class Fleet:
    """Two buckets, and nodes on them."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.config = MemoryBucket(CONFIG, self.clock)
        self.status = MemoryBucket(STATUS, self.clock)
        self.nodes: list[Node] = []

    async def node(self, name: str, document: str) -> Node:
        node = Node(self, name, len(self.nodes))
        self.nodes.append(node)
        await node.begin(document)
        return node


class Node:
    """A node that runs whatever it is told to, unless ``refuses`` it."""

    def __init__(self, fleet: Fleet, name: str, seed: int) -> None:
        self.document, self.number = "", 0
        self.refuses = ""
        self.company = FleetCompany(
            FleetCompanyParts(
                config=MemoryRecordStore(fleet.config),
                status=MemoryRecordStore(fleet.status),
                node_id=name,
                posture=ServingPosture(),
                clock=fleet.clock,
                ids=SeededIds(seed),
            )
        )

    async def begin(self, document: str) -> None:
        active = await self.company.first(document)
        self.document, self.number = active.pointer.document, active.epoch
        self.company.start(lambda: self.number, lambda: self.document, self.take)

    async def take(self, current: Callable[[], Awaitable[ActiveConfig]]) -> ActiveConfig:
        active = await current()
        if active.pointer.document == self.refuses:
            raise ConfigError(Problem("providers.llm.fast", "has no key"))
        self.document, self.number = active.pointer.document, active.epoch
        return active

    async def activate(self, document: str) -> None:
        self.number = await self.company.activate(document, "ada")
        self.document = document


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    fleet = Fleet()
    yield fleet
    for node in fleet.nodes:
        await node.company.close()


async def test_the_first_node_publishes_its_document_and_the_next_takes_it_over(fleet: Fleet) -> None:
    first = await fleet.node("a", "one")
    second = await fleet.node("b", "another")

    assert (second.document, second.number) == ("one", first.number)


async def test_what_one_node_activates_every_node_takes(fleet: Fleet) -> None:
    first, second = await fleet.node("a", "one"), await fleet.node("b", "one")

    await first.activate("two")
    await asyncio.sleep(SOON_S)

    assert (second.document, second.number) == ("two", first.number)
    assert {name: said.epoch for name, said in (await first.company.reported()).items()} == {
        "a": first.number,
        "b": first.number,
    }


async def test_a_node_moves_the_pointer_only_from_what_it_runs(fleet: Fleet) -> None:
    first, second = await fleet.node("a", "one"), await fleet.node("b", "one")
    await second.company.close()
    await first.activate("two")

    with pytest.raises(Conflict):
        await second.activate("three")
    with pytest.raises(Unavailable):
        await second.company.confirm_current()


async def test_a_node_that_runs_what_is_current_may_speak_for_the_company(fleet: Fleet) -> None:
    node = await fleet.node("a", "one")
    await node.activate("two")

    await node.company.confirm_current()


async def test_a_document_that_a_node_cannot_run_is_told_of_by_it_and_tried_again(fleet: Fleet) -> None:
    first, second = await fleet.node("a", "one"), await fleet.node("b", "one")
    second.refuses = "two"
    before = second.number

    await first.activate("two")
    await asyncio.sleep(SOON_S)
    said = (await first.company.reported())["b"]
    problems = second.company.problems()
    second.refuses = ""
    await asyncio.sleep(60)

    assert (said.epoch, said.status) == (before, "error")
    assert "providers.llm.fast" in said.error
    assert any("providers.llm.fast" in each for each in problems)
    assert (second.document, second.company.problems()) == ("two", ())


async def test_a_pointer_that_was_lost_is_made_again_by_who_runs_the_document(fleet: Fleet) -> None:
    node = await fleet.node("a", "one")
    await asyncio.sleep(SOON_S)
    store, before = MemoryRecordStore(fleet.config), node.number

    await store.delete("company.activation", expected=Revision(before))
    await asyncio.sleep(SOON_S)

    [record] = await store.list("company.*")
    assert (node.document, node.number) == ("one", record.revision)
    assert node.number != before


async def test_a_store_that_was_away_is_followed_again(fleet: Fleet) -> None:
    first, second = await fleet.node("a", "one"), await fleet.node("b", "one")
    await asyncio.sleep(SOON_S)

    fleet.config.cut = True
    await asyncio.sleep(5)
    problems = second.company.problems()
    fleet.config.cut = False
    await first.activate("two")
    await asyncio.sleep(20)

    assert any("not followed" in each for each in problems)
    assert (second.document, second.company.problems()) == ("two", ())
