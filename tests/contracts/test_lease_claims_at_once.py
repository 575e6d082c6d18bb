"""A hundred nodes claim ten thousand seats at once: nobody is told no for what is theirs, nothing is held twice."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from crewlet import topics
from crewlet.backends.nats import JetStream, open_bucket
from crewlet.base.clock import SystemClock
from crewlet.base.errors import Unavailable
from crewlet.base.ids import RandomIds
from crewlet.coordination import ClaimRefused, KvLeases, Lease, RecordStore, Slot
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.testing.clusters import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(900)]

NODES = 100
SEATS_EACH = 100
AT_ONCE = 4
TTL_S = 1800.0
PASSES = 5
UNHEARD_MAX = 0.01 * NODES * SEATS_EACH
"""Claims that may be left unanswered by a machine that is busy: what is unknown is asked again, and is no wrong no."""

CLOCK, IDS = SystemClock(), RandomIds()


@dataclass(frozen=True, slots=True)
class Node:
    owner: str
    leases: KvLeases
    unheard: list[Unavailable] = field(default_factory=list[Unavailable])


@asynccontextmanager
async def fleet(cluster: Cluster, case: str) -> AsyncGenerator[list[Node]]:
    """The nodes, each on one connection of its own, to one member after another."""
    slots = [replace(slot, name=f"{slot.name}_{case}") for slot in (replace(LEASES, age_s=TTL_S), DUTIES, EPOCHS)]
    async with AsyncExitStack() as stack:
        nodes: list[Node] = []
        for number in range(NODES):
            wire = await cluster.connect(f"node-{number}", member=number % cluster.size)
            stack.push_async_callback(wire.close)
            api = JetStream(wire)
            leases, duties, epochs = [await opened(api, slot, cluster.size) for slot in slots]
            kept = KvLeases(leases=leases, duties=duties, epochs=epochs, clock=CLOCK, ids=IDS)
            stack.push_async_callback(kept.close)
            nodes.append(Node(f"node-{number}:{IDS.hex(8)}", kept))
        yield nodes
        eye = await cluster.connect("eye")
        stack.push_async_callback(eye.close)
        for slot in slots:
            await JetStream(eye).stream_delete(topics.bucket_stream(topics.bucket(slot.name)))


async def opened(api: JetStream, slot: Slot, replicas: int) -> RecordStore:
    return (await open_bucket(api, slot, storage="file", ids=IDS, replicas=replicas, clock=CLOCK)).store


async def claims(node: Node, seats: list[str]) -> list[tuple[str, Node, Lease | ClaimRefused]]:
    """Claim each of them, several at a time; what the store did not say is asked again, as a next pass would."""
    slots, answers = asyncio.Semaphore(AT_ONCE), list[tuple[str, Node, Lease | ClaimRefused]]()

    async def claim(seat: str) -> None:
        async with slots:
            for _ in range(PASSES):
                try:
                    answer = await node.leases.claim(seat, owner=node.owner, ttl_s=TTL_S, preferred=node.owner)
                except Unavailable as error:
                    node.unheard.append(error)
                else:
                    answers.append((seat, node, answer))
                    return

    await asyncio.gather(*(claim(seat) for seat in seats))
    return answers


@pytest.mark.spec("C-054", "C-056", "S-002", "S-008", "S-200")
async def test_ten_thousand_fresh_seats_are_each_granted_to_whoever_claims_them(three_members: Cluster) -> None:
    async with fleet(three_members, "fresh") as nodes:
        seats = [[f"seat:s{number}-{each}" for each in range(SEATS_EACH)] for number in range(NODES)]
        began_s = time.perf_counter()

        told = await asyncio.gather(*map(claims, nodes, seats))

        took_s = time.perf_counter() - began_s
        answers = [answer for each in told for answer in each]
        refused = [answer for _, _, answer in answers if isinstance(answer, ClaimRefused)]
        unheard = [error for node in nodes for error in node.unheard]
        held = {lease.resource: (lease.owner, lease.epoch) for lease in await nodes[0].leases.held("seat")}
        print(f"{len(answers)} claims in {took_s:.1f} s; refused {len(refused)}, unheard {len(unheard)}")
        assert refused == []
        assert {seat: owner for seat, (owner, _) in held.items()} == {seat: node.owner for seat, node, _ in answers}
        assert len(held) == NODES * SEATS_EACH
        assert sum(epoch - 1 for _, epoch in held.values()) <= len(unheard) <= UNHEARD_MAX


@pytest.mark.spec("C-056", "S-002", "S-008")
async def test_of_a_hundred_that_want_the_same_seats_each_seat_has_one(three_members: Cluster) -> None:
    async with fleet(three_members, "wanted") as nodes:
        seats = [f"seat:s{number}" for number in range(SEATS_EACH)]

        told = await asyncio.gather(*(claims(node, seats[at:] + seats[:at]) for at, node in enumerate(nodes)))

        answers = [answer for each in told for answer in each]
        granted = [answer for _, _, answer in answers if isinstance(answer, Lease)]
        refused = [(answer, node) for _, node, answer in answers if isinstance(answer, ClaimRefused)]
        mine = [answer for answer, node in refused if answer.holder == node.owner]
        unheard = [error for node in nodes for error in node.unheard]
        held = Counter((lease.resource, lease.owner) for lease in await nodes[0].leases.held("seat"))
        print(f"{len(answers)} claims; granted {len(granted)}, refused {len(refused)}, of them their own {len(mine)}")
        assert mine == []
        assert len(unheard) <= UNHEARD_MAX
        assert held == Counter((lease.resource, lease.owner) for lease in granted)
        assert sorted(resource for resource, _ in held) == sorted(seats)
