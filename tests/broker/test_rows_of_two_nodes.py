"""Two nodes on one broker: an event is a row of the node that published it, once, and of no other."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from crewlet import topics
from crewlet.base.clock import SystemClock
from crewlet.base.ids import RandomIds
from crewlet.base.trace import fresh_trace
from crewlet.config import load_node_file
from crewlet.events import Event, new_event
from crewlet.events.types import OrgStarted
from crewlet.node.ground import Ground, lay_ground
from crewlet.store import EventFilter
from crewlet.testing.clusters import Cluster, running_cluster

pytestmark = pytest.mark.slow

Nodes = dict[str, Ground]
TOPIC = topics.event_topic("org_started")


@pytest.fixture
def broker() -> Iterator[Cluster]:
    with running_cluster(1) as broker:
        yield broker


@pytest.fixture
async def nodes(broker: Cluster, tmp_path: Path) -> AsyncGenerator[Nodes]:
    async with AsyncExitStack() as stack:
        nodes: Nodes = {}
        for name in ("north", "south"):
            (tmp_path / name).mkdir()
            file = tmp_path / name / "crewlet.yaml"
            stream = f"stream: {{type: nats, url: '{broker.url}', token: {broker.token}}}"
            file.write_text(f"node: {{id: {name}}}\ncoordination: {{type: embedded-kv}}\n{stream}\n")
            config = load_node_file(file, {}).config
            nodes[name] = await lay_ground(config, SystemClock(), RandomIds(), stack)
        yield nodes


def started() -> Event:
    ids = RandomIds()
    return new_event(OrgStarted(company="Testers", seats=1), trace=fresh_trace(ids), now=SystemClock().now(), ids=ids)


async def rows(node: Ground) -> list[tuple[str, str]]:
    """The id and the publisher of each row."""
    return [(stored.event.id, stored.event.node) for stored in await node.event_log.events(EventFilter())]


@pytest.mark.spec("C-197", "E-192")
async def test_each_event_is_a_row_when_its_publish_returns_and_on_its_publisher_alone(nodes: Nodes) -> None:
    of_north, of_south = started(), started()

    await nodes["north"].queue.publish(TOPIC, of_north)
    at_once = await rows(nodes["north"])
    await nodes["south"].queue.publish(TOPIC, of_south)

    assert at_once == [(of_north.id, "north")]
    assert await rows(nodes["north"]) == [(of_north.id, "north")]
    assert await rows(nodes["south"]) == [(of_south.id, "south")]


@pytest.mark.spec("E-192")
async def test_the_rows_are_written_without_a_subscription(nodes: Nodes) -> None:
    await nodes["north"].queue.publish(TOPIC, started())

    assert await nodes["south"].queue.list_subscriptions(topics.stream_subjects(topics.STREAM_EVENTS)) == []
