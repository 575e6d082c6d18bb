"""Three members for the tests that need them, started once, and a store on one broker for the others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from crewlet.backends.nats import JetStream, NatsRecordStore, open_bucket
from crewlet.base.ids import RandomIds
from crewlet.coordination import Slot
from crewlet.testing.clusters import Cluster, running_cluster


@pytest.fixture(scope="session")
def members() -> Iterator[Cluster]:
    with running_cluster(3) as cluster:
        yield cluster


@pytest.fixture
async def members_api(members: Cluster) -> AsyncIterator[JetStream]:
    wire = await members.connect("test")
    try:
        yield JetStream(wire)
    finally:
        await wire.close()


@pytest.fixture
async def store(jetstream: JetStream) -> NatsRecordStore:
    slot = Slot("tested", None, "a slot of the tests")
    return (await open_bucket(jetstream, slot, storage="file", ids=RandomIds())).store
