"""Embedded brokers as members of one cluster: who is let in, what one member's end costs, and whose a store is."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from crewlet.backends.nats import (
    BrokerConfig,
    EmbeddedBroker,
    JetStream,
    connect,
    refuse_second_of_a_name,
    wait_for_peers,
)
from crewlet.backends.nats.jetstream_types import ApiError, StreamConfig
from crewlet.backends.nats.streams import Streams
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.queue import QueueConfig
from crewlet.testing.brokers import running_broker
from crewlet.testing.members import Member, member_configs, running_members, with_secret

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(180)]

COPIED = StreamConfig(name="COPIED", subjects=["copied.>"], storage="file", num_replicas=3, max_msgs_per_subject=1)


@pytest.fixture
async def members(tmp_path: Path) -> AsyncIterator[list[Member]]:
    async with running_members(member_configs(tmp_path)) as members:
        yield members


async def copied(members: list[Member]) -> list[JetStream]:
    """A stream of three copies; each member's way to it."""
    apis = [JetStream(member.connection, peers_wait_s=30.0) for member in members]
    await apis[0].stream_create(COPIED)
    return apis


async def test_what_one_member_takes_the_others_tell(members: list[Member]) -> None:
    first, second, third = await copied(members)

    await first.publish("copied.a", b"1")

    found = [await api.last_message("COPIED", "copied.a") for api in (second, third)]
    assert [each.data for each in found if each is not None] == [b"1", b"1"]


@pytest.mark.spec("E-004")
async def test_each_listens_for_clients_and_members_on_loopback_alone(members: list[Member]) -> None:
    listening = [
        connection.laddr.ip
        for member in members
        for connection in psutil.Process(member.broker.pid).net_connections("tcp")
        if connection.status == "LISTEN"
    ]

    assert listening == ["127.0.0.1"] * 6


@pytest.mark.spec("E-004")
async def test_a_login_of_one_member_is_a_strangers_at_another_and_so_is_none(members: list[Member]) -> None:
    first, second, _ = members

    for seed in (first.broker.seed, ""):
        with pytest.raises(StartRefused, match="refused our login"):
            await connect(second.broker.url, seed=seed)


async def test_a_client_is_not_sent_to_members_that_do_not_know_it(members: list[Member]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(members[0].broker.url.rpartition(":")[2]))
    told = await reader.readline()
    writer.close()
    await writer.wait_closed()

    assert told.startswith(b"INFO ")
    assert b"connect_urls" not in told


async def test_a_stranger_without_the_secret_does_not_join_and_is_told_what_to_look_at(
    members: list[Member], tmp_path: Path
) -> None:
    at_home = members[0].config.cluster
    assert at_home is not None
    stranger = replace(
        with_secret(members[0].config, "some-other-secret"),
        name="stranger",
        store_dir=tmp_path / "stranger",
    )
    assert stranger.cluster is not None
    peers = (f"127.0.0.1:{at_home.port}", *at_home.peers)
    stranger = replace(stranger, cluster=replace(stranger.cluster, port=free_port(), peers=peers))
    outsider = Member(stranger, EmbeddedBroker(stranger))
    try:
        await outsider.start()

        with pytest.raises(StartRefused) as refused:
            await wait_for_peers(
                outsider.connection, cluster="test", peers=peers, last_words=outsider.broker.last_words, timeout_s=3.0
            )
    finally:
        await outsider.stop()

    assert "stream.cluster.secret" in refused.value.remedy


async def test_a_second_member_of_a_name_is_told_that_the_first_one_lives(
    members: list[Member], tmp_path: Path
) -> None:
    at_home = members[0].config.cluster
    assert at_home is not None
    peers = (f"127.0.0.1:{at_home.port}", *at_home.peers)
    config = replace(members[0].config, store_dir=tmp_path / "namesake")
    namesake = Member(
        config := replace(config, cluster=replace(at_home, port=free_port(), peers=peers)), EmbeddedBroker(config)
    )
    try:
        await namesake.start()
        words = namesake.broker.said_in_this_run

        await wait_for_peers(namesake.connection, cluster="test", peers=peers, last_words=words)
        with pytest.raises(StartRefused) as refused:
            await refuse_second_of_a_name(member=namesake.name, last_words=words)
    finally:
        await namesake.stop()

    assert "node.id" in refused.value.remedy


async def test_the_secret_is_on_no_disk_and_in_no_argument(members: list[Member], tmp_path: Path) -> None:
    await copied(members)
    secret = members[0].config.cluster.secret if members[0].config.cluster else ""
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    arguments = [psutil.Process(member.broker.pid).cmdline() for member in members]

    assert len(secret) >= 16
    assert len(files) > 9
    assert not any(secret.encode() in content for content in files)
    assert secret not in repr(arguments)
    assert secret not in repr(members)


async def test_writes_go_on_while_a_member_ends_as_asked(members: list[Member]) -> None:
    apis = await copied(members)
    led_by = (await apis[0].stream_info("COPIED")).cluster  # type: ignore[union-attr] - it was just made
    leader = next(member for member in members if led_by is not None and member.name == led_by.leader)
    other = next(member for member in members if member is not leader)
    longest = asyncio.ensure_future(longest_silence(JetStream(other.connection, timeout_s=0.5), for_s=6.0))
    await asyncio.sleep(0)

    await leader.stop()

    # A leader that is killed instead silences its streams for five to eight seconds.
    assert await longest < 2.0


async def test_the_majority_goes_on_without_a_member_that_was_killed_and_fills_it_when_it_is_back(
    members: list[Member],
) -> None:
    first, second, third = members
    api = (await copied(members))[0]
    await third.kill()
    for number in range(20):
        await until_taken(api, f"copied.{number}", b"while it was away")

    await third.start()
    await third.wait_ready()

    info = await JetStream(third.connection).stream_info("COPIED")
    assert info is not None
    assert info.cluster is not None
    assert {copy.name: copy.current for copy in info.cluster.replicas} == {
        each.name: True for each in (first, second, third) if each.name != info.cluster.leader
    }
    last = await JetStream(third.connection).last_message("COPIED", "copied.19")
    assert last is not None


async def test_a_member_that_lost_its_disk_is_filled_by_the_others(members: list[Member]) -> None:
    api = (await copied(members))[0]
    third = members[2]
    await api.publish("copied.a", b"kept")
    await third.kill()
    assert third.config.store_dir is not None
    await asyncio.to_thread(shutil.rmtree, third.config.store_dir)

    await third.start()
    await third.wait_ready()

    # It alone with one other is a majority that must know what was kept.
    await members[0].kill()
    found = await until_read(JetStream(third.connection), "COPIED", "copied.a")
    assert found == b"kept"


async def test_a_message_sent_again_while_the_members_store_it_is_stored_once_and_taken_both_times(
    members: list[Member],
) -> None:
    first, second, _ = await copied(members)

    acks = await asyncio.gather(
        *(api.publish("copied.twice", b"1", message_id="an-id") for _ in range(20) for api in (first, second))
    )

    assert len({ack.seq for ack in acks}) == 1


async def test_one_of_three_takes_nothing_and_says_whom_it_waits_for(tmp_path: Path) -> None:
    config = member_configs(tmp_path)[0]
    alone = Member(config, EmbeddedBroker(config))
    try:
        await alone.start()

        with pytest.raises(StartRefused) as refused:
            await alone.wait_ready(timeout_s=2.0)
    finally:
        await alone.stop()

    assert config.cluster is not None
    for peer in config.cluster.peers:
        assert peer in refused.value.problem


async def test_copies_are_made_once_the_last_member_has_come(tmp_path: Path) -> None:
    configs = member_configs(tmp_path)
    async with running_members(configs[:2]) as two:
        third = Member(configs[2], EmbeddedBroker(configs[2]))
        creating = asyncio.ensure_future(JetStream(two[0].connection, peers_wait_s=30.0).stream_create(COPIED))
        with pytest.raises(ApiError, match="no suitable peers"):
            await JetStream(two[1].connection).stream_create(replace_name("OTHER"))
        try:
            await third.start()

            assert (await creating).config.num_replicas == 3
        finally:
            await third.stop()


async def test_a_stream_with_fewer_copies_than_asked_for_is_refused_with_both_numbers_and_the_command(
    members: list[Member],
) -> None:
    await Streams(JetStream(members[0].connection), QueueConfig(replicas=1), "file").provision()

    with pytest.raises(StartRefused) as refused:
        await Streams(JetStream(members[1].connection), QueueConfig(replicas=3), "file").provision()

    assert "1 replica(s)" in refused.value.problem
    assert "asks for 3" in refused.value.problem
    assert "--replicas=3" in refused.value.remedy


async def test_a_stream_with_more_copies_than_asked_for_is_taken_as_it_is(members: list[Member]) -> None:
    three = JetStream(members[0].connection, peers_wait_s=30.0)
    await Streams(three, QueueConfig(replicas=3), "file").provision()

    await Streams(JetStream(members[1].connection), QueueConfig(replicas=1), "file").provision()

    info = await three.stream_info("CREWLET_AGENT")
    assert info is not None
    assert info.config.num_replicas == 3


async def test_a_port_that_is_taken_is_refused_by_number(tmp_path: Path) -> None:
    config = member_configs(tmp_path)[0]
    assert config.cluster is not None
    with socket.create_server(("127.0.0.1", config.cluster.port)), pytest.raises(StartRefused) as refused:
        await EmbeddedBroker(config).start()

    assert str(config.cluster.port) in refused.value.problem
    assert "stream.cluster.port" in refused.value.remedy


async def test_a_store_of_a_broker_that_was_alone_is_no_members(tmp_path: Path) -> None:
    config = member_configs(tmp_path)[0]
    async with running_broker(store_dir=config.store_dir) as alone:
        wire = await connect(alone.urls, seed=alone.seed)
        await JetStream(wire).stream_create(StreamConfig(name="MAIL", subjects=["mail"], storage="file"))
        await wire.close()

    with pytest.raises(StartRefused, match="broker that was alone"):
        await EmbeddedBroker(config).start()


async def test_a_members_store_is_no_other_members_and_no_lone_brokers(tmp_path: Path) -> None:
    first, second, _ = member_configs(tmp_path)
    broker = EmbeddedBroker(first)
    await broker.start()
    await broker.stop()

    for other in (replace(second, store_dir=first.store_dir), BrokerConfig(store_dir=first.store_dir)):
        with pytest.raises(StartRefused, match="the member member-0 of the cluster test"):
            await EmbeddedBroker(other).start()


def replace_name(name: str) -> StreamConfig:
    return StreamConfig(name=name, subjects=[name], storage="file", num_replicas=3)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def longest_silence(api: JetStream, *, for_s: float) -> float:
    """The longest time between two writes that were taken, of writes sent all the while."""
    clock = asyncio.get_running_loop().time
    began = last = clock()
    longest = 0.0
    while clock() - began < for_s:
        try:
            await api.publish("copied.beat", b"")
        except Unavailable:
            continue
        longest, last = max(longest, clock() - last), clock()
    return max(longest, clock() - last)


async def until_read(api: JetStream, stream: str, subject: str) -> bytes | None:
    async with asyncio.timeout(30.0):
        while True:
            try:
                found = await api.last_message(stream, subject)
            except Unavailable:
                continue
            return None if found is None else found.data


async def until_taken(api: JetStream, subject: str, payload: bytes) -> None:
    async with asyncio.timeout(30.0):
        while True:
            try:
                await api.publish(subject, payload)
            except Unavailable:
                continue
            return
