"""What the stream of events hears of a company's life on a node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from crewlet import topics
from crewlet.backends.nats import JetStream
from crewlet.events import decode
from crewlet.events.types import OrgStarted, OrgStopped
from crewlet.testing.clusters import Cluster, running_cluster
from tests.broker.booted_nodes import BootedNodes

pytestmark = pytest.mark.slow


@pytest.fixture
def broker() -> Iterator[Cluster]:
    with running_cluster(1) as broker:
        yield broker


@pytest.mark.spec("E-113")
async def test_a_node_tells_that_it_serves_the_company_and_that_it_stops(broker: Cluster, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        node = await BootedNodes(broker, tmp_path, stack).booted("north")
        await node.start_seats()

    connection = await broker.connect("watcher")
    events = JetStream(connection)
    told = [
        await events.last_message(topics.STREAM_EVENTS, topics.event_topic(each))
        for each in ("org_started", "org_stopped")
    ]
    await connection.close()

    said = [decode(bytes(message.data)) for message in told if message is not None]
    assert [event.data for event in said] == [OrgStarted(company="Testers", seats=2), OrgStopped(company="Testers")]
    assert {event.node for event in said} == {"north"}
