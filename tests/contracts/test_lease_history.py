"""Nodes claim, renew and release while members die and links fail: every answer has an explanation."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import replace

import pytest

from crewlet import topics
from crewlet.backends.nats import JetStream, open_bucket
from crewlet.base.clock import SystemClock
from crewlet.base.errors import Unavailable
from crewlet.base.ids import RandomIds
from crewlet.coordination import KvLeases, Lease, RecordStore, Slot
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.testing.clusters import Cluster, running_cluster
from crewlet.testing.lease_history import LeaseCall, RecordedLeases
from crewlet.testing.lease_linearizability import check_leases
from crewlet.testing.links import LinkProxy, proxied

LASTS_S = float(os.environ.get("CREWLET_LEASE_HISTORY_S", "40"))
LEASE_TTL_S = 2.0
RESOURCES = {"seat:ada": LEASE_TTL_S, "seat:bob": LEASE_TTL_S, "node:n": LEASE_TTL_S, "worker:tick": 1.0, "move:b": 8.0}
NODES = 6
CLOCK, IDS = SystemClock(), RandomIds()
SLOTS = (replace(LEASES, age_s=LEASE_TTL_S), DUTIES, EPOCHS)

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(240 + 2 * LASTS_S)]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster(3) as cluster:
        yield cluster


class Node:
    """Its place in the cluster, and one process after another."""

    def __init__(self, name: str, proxy: LinkProxy, history: list[LeaseCall], chance: random.Random) -> None:
        self.proxy = proxy
        self._name = name
        self._history = history
        self._chance = chance

    async def live(self, stores: list[RecordStore]) -> None:
        """Processes that each do a few things and are killed, until cancelled."""
        while True:
            leases, duties, epochs = stores
            kept = KvLeases(leases=leases, duties=duties, epochs=epochs, clock=CLOCK, ids=IDS)
            try:
                await self._process(RecordedLeases(kept, CLOCK, self._history), f"{self._name}:{IDS.hex(8)}")
            finally:
                await kept.close()

    async def _process(self, leases: RecordedLeases, owner: str) -> None:
        held: dict[str, Lease] = {}
        for _ in range(self._chance.randint(5, 25)):
            resource = self._chance.choice([*held] if held and self._chance.random() < 0.6 else [*RESOURCES])
            with suppress(Unavailable, TimeoutError):
                async with asyncio.timeout(self._chance.choice([None] * 9 + [0.01, 0.1, 1.0])):
                    await self._act(leases, owner, resource, held)
            await asyncio.sleep(self._chance.uniform(0, 0.3))

    async def _act(self, leases: RecordedLeases, owner: str, resource: str, held: dict[str, Lease]) -> None:
        ttl_s, lease = RESOURCES[resource], held.get(resource)
        if lease is None:
            claimed = await leases.claim(resource, owner=owner, ttl_s=ttl_s)
            if isinstance(claimed, Lease):
                held[resource] = claimed
        elif self._chance.random() < 0.3:
            await leases.release(lease)
            del held[resource]
        elif await leases.renew(lease, ttl_s=ttl_s) is None:
            del held[resource]


async def opened(api: JetStream, slot: Slot) -> RecordStore:
    return (await open_bucket(api, slot, storage="file", ids=IDS, replicas=3, clock=CLOCK)).store


async def spoil(cluster: Cluster, eye: JetStream, nodes: list[Node], chance: random.Random) -> None:
    """One thing after another goes wrong, until cancelled."""
    streams = [topics.bucket_stream(topics.bucket(slot.name)) for slot in SLOTS]
    while True:
        await asyncio.sleep(chance.uniform(0.3, 1.0))
        match chance.choice(["step down", "step down", "kill", "drop", "freeze", "swallow", "swallow"]):
            case "step down":
                with suppress(Unavailable, TimeoutError):
                    await cluster.step_down(eye, chance.choice(streams))
            case "kill":
                member = chance.randrange(1, 3)
                await cluster.kill(member)
                await asyncio.sleep(chance.uniform(0.5, 3))
                cluster.start(member)
                await cluster.wait_ready()
            case "drop":
                chance.choice(nodes).proxy.drop()
            case "freeze":
                proxy = chance.choice(nodes).proxy
                proxy.freeze()
                await asyncio.sleep(chance.uniform(0.2, 2.5))
                proxy.thaw()
            case _:
                proxy = chance.choice(nodes).proxy
                proxy.swallow_replies = True
                await asyncio.sleep(chance.uniform(0.1, 0.6))
                proxy.swallow_replies = False
                proxy.drop()


@pytest.mark.spec("S-002", "S-008", "S-009")
async def test_no_answer_is_one_that_a_single_register_could_not_have_given(cluster: Cluster) -> None:
    history: list[LeaseCall] = []
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    async with AsyncExitStack() as stack:
        eye = await cluster.connect("eye", member=0)
        stack.push_async_callback(eye.close)
        nodes: list[Node] = []
        living: list[list[RecordStore]] = []
        for number in range(NODES):
            port = int(cluster.member_url(number % cluster.size).rpartition(":")[2])
            proxy = await stack.enter_async_context(proxied(port))
            wire = await cluster.connect(f"node-{number}", url=proxy.url)
            stack.push_async_callback(wire.close)
            api = JetStream(wire, timeout_s=2.0)
            living.append([await opened(api, slot) for slot in SLOTS])
            nodes.append(Node(f"node-{number}", proxy, history, random.Random(chance.random())))
        with suppress(TimeoutError):
            async with asyncio.timeout(LASTS_S), asyncio.TaskGroup() as group:
                for node, stores in zip(nodes, living, strict=True):
                    group.create_task(node.live(stores))
                group.create_task(spoil(cluster, JetStream(eye), nodes, chance))

    told = Counter(f"{call.what} {call.answer}" for call in history)
    print(dict(told))
    assert min(told[each] for each in ("claim yes", "claim no", "claim unknown", "renew yes", "release yes")) > 10
    check_leases(history)
