"""Listings while their keys are rewritten, removed and created again without rest: never one that is wrong.

The short run is a sample. ``CREWLET_FULL_CHURN=1`` (``make chaos``) takes ten thousand answers of each case.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from nats.aio.client import Client
from nats.js.errors import NoKeysError

from crewlet.backends.nats import Connection, EmbeddedBroker, JetStream, NatsRecordStore, open_bucket
from crewlet.backends.nats.jetstream_types import StoredMessage
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.ids import RandomIds
from crewlet.base.tasks import Tasks
from crewlet.coordination import Slot
from crewlet.testing.clusters import Cluster
from tests.broker.records.churn import Churn, Verdict

FULL = bool(os.environ.get("CREWLET_FULL_CHURN"))
ANSWERS = 10_000 if FULL else 150
PEER_ANSWERS = 300 if FULL else 60
CUT_SHORT_ANSWERS = 1_000 if FULL else 50
LISTERS = 4
IDS = RandomIds()

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600 if FULL else 120)]


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    live: int
    recreated: int
    writers: int


FEW = Case("few", live=5, recreated=0, writers=5)
MANY = Case("many", live=200, recreated=20, writers=16)


class CountingReads(JetStream):
    """Counts the single keys that the leader was asked for."""

    reads = 0

    async def last_message(self, stream: str, subject: str) -> StoredMessage | None:
        self.reads += 1
        return await super().last_message(stream, subject)


async def judged(churn: Churn, stores: list[NatsRecordStore], answers: int) -> Verdict:
    """Let some listers list through these stores until there are enough answers."""
    verdict = Verdict()

    async def lister(store: NatsRecordStore) -> None:
        async def listing() -> Iterable[tuple[str, int]]:
            return [(record.key, record.revision) for record in await store.list("seat.>")]

        while verdict.answers < answers:
            await churn.judge(verdict, listing)

    async with asyncio.TaskGroup() as group:
        for number in range(LISTERS):
            group.create_task(lister(stores[number % len(stores)]))
    return verdict


def told(name: str, verdict: Verdict, churn: Churn) -> None:
    print(
        f"\n{name}: {verdict.answers} answers, {dict(verdict.wrong)} wrong, {verdict.stale} stale records,"
        f" {verdict.unavailable} unavailable, {churn.writes} writes"
    )


@pytest.mark.spec("C-012", "C-020", "C-040", "C-042", "C-043")
@pytest.mark.parametrize("case", [FEW, MANY], ids=lambda case: case.name)
async def test_on_one_broker_no_answer_is_wrong(wire: Connection, case: Case) -> None:
    api = JetStream(wire)
    slot = Slot(f"churned_{case.name}", None, "a slot of the tests")
    stores = [(await open_bucket(api, slot, storage="file", ids=IDS)).store]
    churn = Churn(f"crewlet_{slot.name}", [api], live=case.live, recreated=case.recreated)

    async with churn.going_on(case.writers):
        verdict = await judged(churn, stores, ANSWERS)

    told(f"one broker, {case.name}", verdict, churn)
    assert (verdict.wrong, verdict.stale, verdict.unavailable) == ({}, 0, 0), verdict.first_wrong
    assert churn.writes > ANSWERS


@pytest.mark.spec("C-012", "C-040")
async def test_no_answer_is_wrong_where_passes_are_ended_before_they_showed_everything(
    wire: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker on the same machine feeds a pass too fast for it to lose keys; here the quiet rule takes them."""
    monkeypatch.setattr(limits, "LISTING_QUIET_S", 0.0)
    api = CountingReads(wire)
    slot = Slot("churned_cut_short", None, "a slot of the tests")
    stores = [(await open_bucket(api, slot, storage="file", ids=IDS)).store]
    churn = Churn(f"crewlet_{slot.name}", [api], live=MANY.live, recreated=0)

    async with churn.going_on(MANY.writers):
        verdict = await judged(churn, stores, CUT_SHORT_ANSWERS)

    told(f"one broker, {api.reads} keys read from the leader", verdict, churn)
    assert (verdict.wrong, verdict.stale, verdict.unavailable) == ({}, 0, 0), verdict.first_wrong
    assert api.reads > verdict.answers


@pytest.mark.spec("C-021")
async def test_the_same_judge_finds_the_clients_own_listing_wrong(broker: EmbeddedBroker, wire: Connection) -> None:
    api = JetStream(wire)
    slot = Slot("churned_by_another", None, "a slot of the tests")
    await open_bucket(api, slot, storage="file", ids=IDS)
    churn = Churn(f"crewlet_{slot.name}", [api], live=FEW.live, recreated=0)
    client = Client()
    await client.connect(broker.url, nkeys_seed_str=broker.seed)
    bucket = await client.jetstream().key_value(f"crewlet_{slot.name}")  # pyright: ignore[reportUnknownMemberType]
    verdict = Verdict()

    async def listing() -> Iterable[tuple[str, int]]:
        try:
            return [(key, 0) for key in await bucket.keys()]  # pyright: ignore[reportUnknownMemberType]
        except NoKeysError:
            return []

    async with churn.going_on(FEW.writers):
        while verdict.answers < PEER_ANSWERS:
            await churn.judge(verdict, listing)
    await client.close()

    told("the client's own keys()", verdict, churn)
    assert verdict.wrong["missing"] > 0


@pytest.mark.cluster
@pytest.mark.spec("C-012", "C-020", "C-040", "C-042")
@pytest.mark.parametrize("case", [FEW, MANY], ids=lambda case: case.name)
async def test_on_three_members_no_answer_is_wrong_whoever_leads_and_lags(members: Cluster, case: Case) -> None:
    wires = [await members.connect(f"churn{member}", member=member) for member in range(members.size)]
    apis = [JetStream(wire, timeout_s=2.0) for wire in wires]
    slot = Slot(f"churned_{case.name}", None, "a slot of the tests")
    stores = [(await open_bucket(api, slot, storage="file", ids=IDS, replicas=3)).store for api in apis]
    churn = Churn(f"crewlet_{slot.name}", apis, live=case.live, recreated=case.recreated)

    async with churn.going_on(case.writers), disturbed(members, apis, f"KV_crewlet_{slot.name}"):
        verdict = await judged(churn, stores, ANSWERS)
    for wire in wires:
        await wire.close()

    told(f"three members, {case.name}", verdict, churn)
    assert (verdict.wrong, verdict.stale) == ({}, 0), verdict.first_wrong


@asynccontextmanager
async def disturbed(members: Cluster, apis: list[JetStream], stream: str) -> AsyncGenerator[None]:
    """Slow one follower by stopping it in bursts, and make the leader step down now and then."""
    chance, tasks = random.Random(3), Tasks("disturb")

    async def bursts() -> None:
        while True:
            leader = await members.leader(apis[0], stream)
            follower = chance.choice([member for member in range(members.size) if f"member{member}" != leader])
            for _ in range(10):
                members.pause(follower)
                await asyncio.sleep(chance.uniform(0.02, 0.15))
                members.resume(follower)
                await asyncio.sleep(chance.uniform(0.02, 0.15))

    async def changes() -> None:
        while True:
            await asyncio.sleep(chance.uniform(0.5, 2.0))
            await apis[1].wire.request(f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}", timeout_s=2.0)

    tasks.start("bursts", bursts())
    tasks.start("changes", _again(changes))
    try:
        yield
    finally:
        await tasks.close()
        for member in range(members.size):
            members.resume(member)


async def _again(work: Callable[[], Awaitable[None]]) -> None:
    """Whatever the outage that it makes does to its own requests."""
    while True:
        try:
            await work()
        except Unavailable:
            await asyncio.sleep(0.1)
