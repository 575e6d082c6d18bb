"""How many copies the node file asks for is how many members keep of everything, once the node stands on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from crewlet import topics
from crewlet.base.clock import SystemClock
from crewlet.base.errors import StartRefused
from crewlet.base.ids import RandomIds
from crewlet.config import load_node_file
from crewlet.node.ground import lay_ground
from crewlet.testing.clusters import Cluster, running_cluster

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(120)]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running_cluster(3) as cluster:
        yield cluster


async def copies(folder: Path, cluster: Cluster, replicas: int) -> dict[str, int]:
    """The copies of every stream there is, once a node of a file that asks for ``replicas`` stands on the cluster."""
    folder.mkdir(exist_ok=True)
    file = folder / "crewlet.yaml"
    file.write_text(
        "coordination: {type: embedded-kv}\n"
        f"stream: {{type: nats, url: '{cluster.url}', token: '{cluster.token}', replicas: {replicas}}}\n"
    )
    async with AsyncExitStack() as stack:
        ground = await lay_ground(load_node_file(file, {}).config, SystemClock(), RandomIds(), stack)
        infos = await ground.access.api.stream_infos()
    return {info.config.name: info.config.num_replicas for info in infos}


async def test_streams_and_buckets_have_as_many_copies_as_are_asked_for(tmp_path: Path, cluster: Cluster) -> None:
    found = await copies(tmp_path, cluster, 3)

    assert set(found.values()) == {3}
    assert topics.STREAM_AGENT in found
    assert topics.bucket_stream(topics.bucket("leases")) in found


async def test_a_node_that_asks_for_more_copies_than_there_are_does_not_start(tmp_path: Path, cluster: Cluster) -> None:
    await copies(tmp_path / "one", cluster, 1)

    with pytest.raises(StartRefused) as refused:
        await copies(tmp_path / "three", cluster, 3)

    assert "1 replica(s)" in refused.value.problem
    assert "asks for 3" in refused.value.problem
    assert "nats stream update" in refused.value.remedy


async def test_a_node_that_asks_for_fewer_copies_than_there_are_takes_them_as_they_are(
    tmp_path: Path, cluster: Cluster
) -> None:
    await copies(tmp_path / "three", cluster, 3)

    assert set((await copies(tmp_path / "one", cluster, 1)).values()) == {3}
