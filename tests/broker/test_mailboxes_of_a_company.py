"""The mailboxes of a company's seats: made by whichever node comes first, before anybody claims a seat, and once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path

import pytest

from crewlet import topics
from crewlet.backends.nats import JetStream
from crewlet.coordination.slots import LEASES
from crewlet.queue import mailboxes_of
from crewlet.testing.clusters import Cluster, running_cluster
from crewlet.testing.waiting import wait_until
from tests.broker.booted_nodes import BootedNodes, document

pytestmark = pytest.mark.slow


@pytest.fixture
def broker() -> Iterator[Cluster]:
    with running_cluster(1) as broker:
        yield broker


@pytest.fixture
async def seen(broker: Cluster) -> AsyncIterator[JetStream]:
    """What the broker says, whatever the nodes believe."""
    connection = await broker.connect("watcher")
    yield JetStream(connection)
    await connection.close()


@pytest.fixture
async def fleet(broker: Cluster, tmp_path: Path) -> AsyncGenerator[BootedNodes]:
    async with AsyncExitStack() as stack:
        yield BootedNodes(broker, tmp_path, stack)


async def made(seen: JetStream) -> dict[str, datetime | None]:
    """Each mailbox of a seat, and when it was made."""
    return {each.name: each.created for each in await seen.consumer_infos(topics.STREAM_AGENT)}


async def claims(seen: JetStream) -> int:
    """How often anybody wrote to the bucket of seats and presence."""
    bucket = await seen.stream_info(topics.bucket_stream(topics.bucket(LEASES.name)))
    assert bucket is not None
    return bucket.state.last_seq


def names_of(*handles: str) -> set[str]:
    return {topics.durable_name(each.topic, each.group) for handle in handles for each in mailboxes_of(handle)}


@pytest.mark.spec("E-053", "E-096")
async def test_every_seats_mailboxes_are_made_at_the_first_nodes_start_ahead_of_any_claim_and_never_again(
    fleet: BootedNodes, seen: JetStream
) -> None:
    await fleet.booted("north")
    first, claimed = await made(seen), await claims(seen)

    await fleet.booted("south")
    second = await made(seen)

    assert (set(first), claimed) == (names_of("ceo", "cto"), 0)
    assert second == first


@pytest.mark.spec("E-053", "E-096")
async def test_a_changed_company_has_its_new_seats_mailboxes_before_anybody_could_claim_them(
    fleet: BootedNodes, seen: JetStream
) -> None:
    north = await fleet.booted("north")
    await north.start_seats()
    before = await made(seen)

    await north.company.apply(document("ceo", "cto", "dev"), by="test")
    after = await made(seen)
    await wait_until(lambda: "dev" in north.health().seats, what="the new seat", timeout_s=20)
    [dev] = [seat for seat in (await north.fleet()).seats if seat.handle == "dev"]
    await fleet.booted("south")

    assert set(after) == names_of("ceo", "cto", "dev")
    assert {name: after[name] for name in before} == before
    assert dev.acquired_at is not None
    assert all(created is not None and created < dev.acquired_at for created in after.values())
    assert await made(seen) == after
