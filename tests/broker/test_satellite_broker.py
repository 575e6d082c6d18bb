"""A satellite's broker: streams of another one are reached through it, taken as they are, and never its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from crewlet import topics
from crewlet.backends.nats import (
    BrokerConfig,
    Connection,
    EmbeddedBroker,
    JetStream,
    JetStreamQueue,
    LeafListener,
    LeafRemotes,
    MembersStreams,
    wait_for_members,
)
from crewlet.backends.nats.jetstream_types import ApiError, StreamConfig
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.queue import QueueConfig
from crewlet.testing import wait_until
from crewlet.testing.brokers import connected_wire
from crewlet.testing.links import LinkProxy, proxied
from crewlet.testing.members import member_configs, running_members
from crewlet.testing.ports import free_port, free_ports

pytestmark = pytest.mark.slow

KEPT_S = 7200.0


@asynccontextmanager
async def broker(config: BrokerConfig) -> AsyncGenerator[EmbeddedBroker]:
    running = EmbeddedBroker(config)
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[tuple[Connection, int]]:
    port = free_port()
    listener = LeafListener(host="127.0.0.1", port=port)
    async with (
        broker(BrokerConfig(store_dir=tmp_path / "hub", leaf_listener=listener)) as running,
        connected_wire(running) as wire,
    ):
        yield wire, port


@asynccontextmanager
async def satellite(folder: Path, port: int) -> AsyncGenerator[tuple[EmbeddedBroker, Connection]]:
    remotes = LeafRemotes(members=(f"127.0.0.1:{port}",))
    async with (
        broker(BrokerConfig(store_dir=folder / "satellite", leaf_remotes=remotes, name="far")) as running,
        connected_wire(running) as wire,
    ):
        yield running, wire


async def streams_of_hub(wire: Connection, *, kept_s: float = KEPT_S) -> None:
    queue = JetStreamQueue(wire, JetStream(wire), node="hub", config=QueueConfig(event_retention_s=kept_s))
    await queue.start()
    await queue.close()


async def within_reach(running: EmbeddedBroker, wire: Connection, *, timeout_s: float = 20.0) -> MembersStreams:
    return await wait_for_members(
        wire,
        members=["the hub"],
        streams=[topics.STREAM_AGENT, topics.STREAM_EVENTS],
        last_words=running.said_in_this_run,
        timeout_s=timeout_s,
    )


@pytest.mark.spec("E-007")
async def test_it_goes_by_how_its_members_keep_the_streams_and_changes_nothing(
    hub: tuple[Connection, int], tmp_path: Path
) -> None:
    at_hub, port = hub
    await streams_of_hub(at_hub)
    async with satellite(tmp_path, port) as (running, wire):
        found = await within_reach(running, wire)
        other = QueueConfig(event_retention_s=KEPT_S / 2)
        queue = JetStreamQueue(wire, JetStream(wire), node="far", config=other, takes_as_found=True)
        await queue.start()
        await queue.close()
        kept = await JetStream(at_hub).stream_info(topics.STREAM_EVENTS)

    assert found == MembersStreams(replicas=1, event_retention_s=KEPT_S)
    assert kept is not None
    assert kept.config.max_age == KEPT_S * 1e9


@pytest.mark.spec("E-007")
async def test_it_makes_no_stream_where_its_members_have_not(hub: tuple[Connection, int], tmp_path: Path) -> None:
    at_hub, port = hub
    async with satellite(tmp_path, port) as (running, wire):
        with pytest.raises(StartRefused, match="not within reach"):
            await within_reach(running, wire, timeout_s=2.0)

    assert await JetStream(at_hub).stream_infos() == []


async def test_nobody_there_is_refused_and_named(tmp_path: Path) -> None:
    async with satellite(tmp_path, free_port()) as (running, wire):
        with pytest.raises(StartRefused, match="the hub") as refused:
            await within_reach(running, wire, timeout_s=1.0)

    assert "stream.leaf.port" in refused.value.remedy


@pytest.mark.parametrize("cut", ["dropped", "silent"])
async def test_a_link_that_is_cut_is_unknown_and_never_no_and_is_dialled_anew(
    hub: tuple[Connection, int], tmp_path: Path, cut: str
) -> None:
    at_hub, port = hub
    await JetStream(at_hub).stream_create(StreamConfig(name="some", subjects=["some"]))
    async with proxied(port) as link, satellite(tmp_path, int(link.url.rpartition(":")[2])) as (_running, wire):
        api = JetStream(wire, timeout_s=1.0)
        await wait_until(lambda: answers(api), what="the link", timeout_s=20)

        cut_off(link, cut)
        with pytest.raises(Unavailable):
            await api.stream_info("some")
        link.refuse = False
        link.thaw()
        await wait_until(lambda: answers(api), what="the link's return", timeout_s=40)


async def answers(api: JetStream) -> bool:
    try:
        return await api.stream_info("some") is not None
    except Unavailable:
        return False


def cut_off(link: LinkProxy, cut: str) -> None:
    if cut == "silent":
        link.freeze()
    else:
        link.refuse = True
        link.drop()


@pytest.mark.cluster
@pytest.mark.timeout(480)
async def test_members_of_a_cluster_keep_what_it_writes_through_any_of_them_whoever_leads(tmp_path: Path) -> None:
    ports = free_ports(2)
    members = member_configs(tmp_path)
    for index, port in enumerate(ports):
        members[index] = replace(members[index], leaf_listener=LeafListener(host="127.0.0.1", port=port))
    remotes = LeafRemotes(members=tuple(f"127.0.0.1:{port}" for port in ports))
    config = BrokerConfig(store_dir=tmp_path / "satellite", leaf_remotes=remotes, name="far")
    async with running_members(members) as running, broker(config) as far, connected_wire(far) as wire:
        api = JetStream(wire, timeout_s=2.0, peers_wait_s=30.0)
        some = StreamConfig(name="some", subjects=["$KV.some.>"], num_replicas=3)
        await wait_until(lambda: made(api, some), what="the stream on three members", timeout_s=60)
        await api.publish("$KV.some.a", b"1", timeout_s=20)
        await running[0].kill()
        await wait_until(lambda: written(api, b"2"), what="a write through the other members", timeout_s=60)
        found = await JetStream(running[1].connection, timeout_s=20).last_message("some", "$KV.some.a")

    assert found is not None
    assert found.data == b"2"


async def made(api: JetStream, stream: StreamConfig) -> bool:
    try:
        await api.stream_create(stream)
    except (Unavailable, ApiError):
        return False
    return True


async def written(api: JetStream, payload: bytes) -> bool:
    try:
        await api.publish("$KV.some.a", payload)
    except Unavailable:
        return False
    return True
