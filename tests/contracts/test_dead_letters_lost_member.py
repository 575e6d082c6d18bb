"""Most members of the cluster are lost: nobody says that there is no dead letter, whatever his own copy holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crewlet import topics
from crewlet.backends.nats import DeadLetterBox, JetStream
from crewlet.base.errors import Unavailable
from crewlet.testing.clusters import Cluster, running_cluster
from crewlet.testing.contracts.queue_on_jetstream import ClusterHarness

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster(3) as cluster:
        yield cluster


async def test_a_leader_without_a_majority_does_not_say_which_dead_letters_there_are(cluster: Cluster) -> None:
    async with ClusterHarness(cluster) as queue:
        await queue.client()
        leader = int((await cluster.leader(queue.api, topics.STREAM_DLQ)).removeprefix("member"))
        wire = await cluster.connect("at the leader", member=leader)
        box = DeadLetterBox(JetStream(wire))
        before = await box.page(limit=10), await box.get("7")
        for member in {0, 1, 2} - {leader}:
            await cluster.kill(member)

        with pytest.raises(Unavailable, match="which dead letters there are is not known"):
            await box.page(limit=10)
        with pytest.raises(Unavailable, match="not known"):
            await box.get("7")

        await wire.close()
        assert (before[0].letters, before[1]) == ((), None)
