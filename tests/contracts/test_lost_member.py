"""A member of the cluster is lost and comes back: mail is published, kept and worked all the while."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crewlet import topics
from crewlet.testing.clusters import Cluster, running_cluster
from crewlet.testing.contracts import event
from crewlet.testing.contracts.queue_handlers import Recorder
from crewlet.testing.contracts.queue_on_jetstream import ClusterHarness

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster(3) as cluster:
        yield cluster


async def test_mail_is_worked_while_the_member_that_led_it_is_gone_and_after_it_is_back(cluster: Cluster) -> None:
    async with ClusterHarness(cluster) as queue:
        client, handler = await queue.client(), Recorder()
        await client.subscribe(queue.inbox(), handler)
        await client.publish(queue.inbox().topic, event("before"))
        await handler.handled(1)
        leader = int((await cluster.leader(queue.api, topics.STREAM_AGENT)).removeprefix("member"))

        await cluster.kill(leader)
        await client.publish(queue.inbox().topic, event("meanwhile"))
        await handler.handled(2)
        cluster.start(leader)
        await cluster.wait_ready()
        await client.publish(queue.inbox().topic, event("after"))
        await handler.handled(3)

        assert handler.ids == ["before", "meanwhile", "after"]
        await queue.emptied(queue.inbox())
