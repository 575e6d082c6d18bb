"""Two nodes on one credential: what a vendor tells one of them, the other knows without asking before a call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from crewlet.backends.memory import MemoryBucket, MemoryRecordStore
from crewlet.coordination import COOLDOWNS, Cooldown, Cooldowns, Record
from crewlet.llm import Cooldowns as CooldownLengths
from crewlet.llm import Models, ProviderConfig, build_models
from crewlet.llm.bag import bag_of
from crewlet.node.key_cooldowns import KeyCooldowns
from crewlet.testing import wait_until
from crewlet.testing.model_replies import Answer, HttpError
from crewlet.testing.model_servers import ModelServer
from tests.e2e.llm.conftest import HELLO, KEY, OTHER_KEY, HandClock

pytestmark = pytest.mark.slow

LIMITED = HttpError(status=429, type="rate_limit_error", headers={"retry-after": "600"})


class WatchedStore(MemoryRecordStore):
    """Counts what is read, and holds each write until ``writable``."""

    def __init__(self, bucket: MemoryBucket) -> None:
        super().__init__(bucket)
        self.reads = 0
        self.writable = asyncio.Event()
        self.writable.set()
        self.writing = False

    async def get(self, key: str) -> Record | None:
        self.reads += 1
        return await super().get(key)

    async def list(self, pattern: str) -> list[Record]:
        self.reads += 1
        return await super().list(pattern)

    async def create(self, key: str, value: bytes) -> Record:
        self.writing = True
        await self.writable.wait()
        return await super().create(key, value)


class Node:
    """A node's models on two keys, and what it shares."""

    def __init__(self, name: str, bucket: MemoryBucket, clock: HandClock, models: Callable[..., Models]) -> None:
        self.store = WatchedStore(bucket)
        self.fleet = Cooldowns(self.store)
        self.cooldowns = KeyCooldowns(name, clock)
        self._new_models = lambda: models(clock, self.cooldowns)
        self.applies()

    def applies(self) -> Models:
        """Take another company into force, on the same keys."""
        self.models = self._new_models()
        self.cooldowns.take_over(self.models)
        return self.models

    async def says(self, models: Models | None = None) -> str:
        return (await (models or self.models).for_chain(["smart"]).complete(HELLO)).message.text


MakeNode = Callable[[str], Node]


@pytest.fixture
async def make_node(server: ModelServer, clock: HandClock) -> AsyncIterator[MakeNode]:
    bucket, made, nodes = MemoryBucket(COOLDOWNS, clock), list[Models](), list[Node]()
    config = ProviderConfig(
        key="smart", type="openai", model="gpt-5.4", api_keys=(KEY, OTHER_KEY), base_url=server.openai_url
    )

    def models(clock: HandClock, cooldowns: KeyCooldowns) -> Models:
        made.append(build_models([config], resolve=lambda text: text, clock=clock, on_bench=cooldowns.benched))
        return made[-1]

    def make(name: str) -> Node:
        nodes.append(Node(name, bucket, clock, models))
        return nodes[-1]

    yield make
    for node in nodes:
        await node.cooldowns.close()
    for each in made:
        await each.aclose()


def keys_used(server: ModelServer) -> list[str]:
    return [request.headers["authorization"].removeprefix("Bearer ") for request in server.requests]


async def test_a_node_that_starts_knows_what_a_peer_met_with(server: ModelServer, make_node: MakeNode) -> None:
    server.will(LIMITED, *(Answer(text="ok") for _ in range(3)))
    north, south = make_node("north"), make_node("south")
    await north.cooldowns.share(north.fleet)
    await north.says()

    await south.cooldowns.share(south.fleet)
    await south.says()
    await north.says()

    assert keys_used(server) == [KEY, OTHER_KEY, OTHER_KEY, OTHER_KEY]


@pytest.mark.spec("C-094")
async def test_a_bench_is_written_before_the_call_goes_on_with_the_next_key(
    server: ModelServer, make_node: MakeNode
) -> None:
    server.will(LIMITED, *(Answer(text="ok") for _ in range(2)))
    node, bystander = make_node("north"), make_node("south")
    await node.cooldowns.share(node.fleet)
    node.store.writable.clear()

    calling = asyncio.ensure_future(node.says())
    await wait_until(lambda: node.store.writing, what="the write")
    await bystander.says()
    asked_by_then = len(server.requests)
    node.store.writable.set()
    await calling

    assert asked_by_then == 2
    assert keys_used(server)[2:] == [OTHER_KEY]


@pytest.mark.spec("C-096")
async def test_no_call_reads_the_shared_records(server: ModelServer, make_node: MakeNode) -> None:
    server.will(*(Answer(text="ok") for _ in range(5)))
    node = make_node("north")
    await node.cooldowns.share(node.fleet)
    at_the_start = node.store.reads

    for _ in range(5):
        await node.says()

    assert (at_the_start, node.store.reads) == (1, 1)


@pytest.mark.spec("C-105")
async def test_a_node_that_shares_nothing_writes_nothing_and_rests_its_key_all_the_same(
    server: ModelServer, make_node: MakeNode
) -> None:
    server.will(LIMITED, *(Answer(text="ok") for _ in range(2)))
    node = make_node("north")

    await node.says()
    await node.says()

    assert keys_used(server) == [KEY, OTHER_KEY, OTHER_KEY]
    assert await node.fleet.all() == []


async def test_a_changed_company_knows_of_its_keys_what_the_one_before_knew(
    server: ModelServer, make_node: MakeNode
) -> None:
    server.will(LIMITED, *(Answer(text="ok") for _ in range(2)))
    node = make_node("north")
    await node.says()

    node.applies()
    await node.says()

    assert keys_used(server) == [KEY, OTHER_KEY, OTHER_KEY]


async def test_what_a_turn_of_the_old_company_meets_with_the_new_one_knows(
    server: ModelServer, make_node: MakeNode
) -> None:
    server.will(LIMITED, *(Answer(text="ok") for _ in range(2)))
    node = make_node("north")
    old = node.models
    node.applies()

    await node.says(old)
    await node.says()
    node.cooldowns.retire(old)

    assert keys_used(server) == [KEY, OTHER_KEY, OTHER_KEY]


async def test_a_reason_that_only_a_later_release_knows_rests_a_key_too(
    server: ModelServer, make_node: MakeNode, clock: HandClock
) -> None:
    server.will(Answer(text="ok"))
    north, south = make_node("north"), make_node("south")
    hint = bag_of("smart", (KEY,), CooldownLengths()).slots[0].credential.hint
    await north.fleet.publish(
        Cooldown(
            provider_key="smart",
            hint=hint,
            until=clock.now() + timedelta(hours=1),
            reason="tired",
            reported_by="a later release",
        )
    )

    await south.cooldowns.share(south.fleet)
    await south.says()

    assert keys_used(server) == [OTHER_KEY]
