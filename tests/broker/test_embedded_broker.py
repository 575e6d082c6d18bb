"""The broker as a child of the engine: held, secret, restarted, and gone with the engine."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from crewlet.backends.nats import BrokerConfig, EmbeddedBroker, JetStream, connect
from crewlet.backends.nats.jetstream_types import ConsumerConfig, StreamConfig, ns
from crewlet.backends.nats.store_lock import StoreLock
from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.testing import wait_until
from crewlet.testing.brokers import connected_wire, running_broker

ENGINE = Path(__file__).with_name("engine_script.py")


@asynccontextmanager
async def separate_engine(directory: Path, thread: str = "main") -> AsyncGenerator[tuple[int, int]]:
    """Another engine on ``directory``; its pid and its broker's."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(ENGINE), str(directory), thread, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    broker_pid = 0
    try:
        assert process.stdout is not None
        while len(words := (await process.stdout.readline()).split()) != 3 or not words[0].isdigit():
            assert process.returncode is None
        broker_pid = int(words[1])
        yield int(words[0]), broker_pid
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        # Nothing to kill, unless what these tests are about has failed.
        if broker_pid and is_running(broker_pid):
            os.kill(broker_pid, signal.SIGKILL)


def takes_port(squatter: socket.socket, port: int) -> bool:
    """Whether the port of a dead broker is free by now; if so it is ``squatter``'s."""
    try:
        squatter.bind(("127.0.0.1", port))
    except OSError:
        return False
    squatter.listen()
    return True


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.alone
async def test_it_answers_its_first_request_within_half_a_second() -> None:
    began = asyncio.get_running_loop().time()

    async with running_broker() as broker, connected_wire(broker) as wire:
        await JetStream(wire).account_info()
        took_s = asyncio.get_running_loop().time() - began

    assert took_s < 0.5


@pytest.mark.spec("E-004")
async def test_it_listens_on_loopback_alone(broker: EmbeddedBroker) -> None:
    listening = [c.laddr.ip for c in psutil.Process(broker.pid).net_connections("tcp") if c.status == "LISTEN"]

    assert listening == ["127.0.0.1"]


@pytest.mark.spec("E-004")
async def test_a_stranger_without_the_seed_is_refused(broker: EmbeddedBroker) -> None:
    with pytest.raises(StartRefused, match="refused our login"):
        await connect(broker.url)


@pytest.mark.spec("E-004")
async def test_a_stranger_with_a_seed_of_its_own_is_refused(broker: EmbeddedBroker) -> None:
    stranger = EmbeddedBroker(BrokerConfig(store_dir=None))

    with pytest.raises(StartRefused, match="refused our login"):
        await connect(broker.url, seed=stranger.seed)


async def test_the_seed_is_in_no_file_and_no_argument(tmp_path: Path) -> None:
    async with running_broker(store_dir=tmp_path) as broker, connected_wire(broker) as wire:
        await JetStream(wire).stream_create(StreamConfig(name="some", subjects=["some"]))
        files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        process = psutil.Process(broker.pid)
        elsewhere = repr(process.cmdline()) + repr(process.environ())

    assert len(files) > 3
    assert not any(broker.seed.encode() in content for content in files)
    assert broker.seed not in elsewhere
    assert broker.seed not in repr(broker)


async def test_it_is_given_nothing_of_the_engines_environment_that_could_be_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    async with running_broker(store_dir=tmp_path) as broker:
        environment = psutil.Process(broker.pid).environ()

    assert "PATH" in environment
    assert "ANTHROPIC_API_KEY" not in environment
    assert "sk-ant-secret" not in environment.values()


async def test_what_it_stores_is_for_its_owner_alone_even_in_a_folder_open_to_others(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    async with running_broker(store_dir=tmp_path) as broker, connected_wire(broker) as wire:
        await JetStream(wire).stream_create(StreamConfig(name="S", subjects=["s"], storage="file"))
        await JetStream(wire).publish("s", b"a secret plan")
        stored = [each for each in (tmp_path / "jetstream").rglob("*") if each.is_file()]

    assert stored
    assert all(stat.S_IMODE(each.stat().st_mode) & 0o077 == 0 for each in stored)


async def test_it_is_outside_the_terminals_process_group(broker: EmbeddedBroker) -> None:
    assert os.getpgid(broker.pid) != os.getpgrp()


@pytest.mark.slow
@pytest.mark.parametrize("thread", ["main", "other"])
async def test_it_dies_with_an_engine_that_is_killed(tmp_path: Path, thread: str) -> None:
    async with separate_engine(tmp_path, thread) as (engine_pid, broker_pid):
        assert is_running(broker_pid)
        os.kill(engine_pid, signal.SIGKILL)

        await wait_until(lambda: not is_running(broker_pid), what="the broker's death", timeout_s=1.0)


@pytest.mark.slow
async def test_the_directory_is_free_once_a_killed_engines_broker_is_gone(tmp_path: Path) -> None:
    async with separate_engine(tmp_path) as (engine_pid, _):
        os.kill(engine_pid, signal.SIGKILL)

        async with running_broker(store_dir=tmp_path) as broker:
            assert broker.pid > 0


@pytest.mark.slow
async def test_a_second_engine_on_a_held_directory_is_refused_by_name(tmp_path: Path) -> None:
    async with separate_engine(tmp_path) as (engine_pid, broker_pid):
        second = EmbeddedBroker(BrokerConfig(store_dir=tmp_path, lock_wait_s=0.2))

        with pytest.raises(StartRefused) as refused:
            await second.start()

    assert f"pid {engine_pid}" in str(refused.value)
    assert f"pid {broker_pid}" in str(refused.value)


@pytest.mark.slow
async def test_a_second_engine_waits_for_the_first_to_end(tmp_path: Path) -> None:
    first = EmbeddedBroker(BrokerConfig(store_dir=tmp_path))
    second = EmbeddedBroker(BrokerConfig(store_dir=tmp_path))
    await first.start()
    starting = asyncio.ensure_future(second.start())
    await asyncio.sleep(0)

    await first.stop()
    await starting

    assert second.pid > 0
    await second.stop()


async def test_the_directory_is_held_while_the_broker_alone_lives(tmp_path: Path) -> None:
    engine = StoreLock(tmp_path)
    await engine.acquire()
    left_behind = subprocess.Popen(["/bin/sleep", "60"], pass_fds=[engine.fd])
    engine.release()

    with pytest.raises(StartRefused):
        await StoreLock(tmp_path).acquire(0.0)
    left_behind.kill()
    left_behind.wait()
    after = StoreLock(tmp_path)
    await after.acquire(0.0)

    assert after.fd >= 0
    after.release()


async def test_a_running_broker_holds_the_lock_itself(tmp_path: Path) -> None:
    async with running_broker(store_dir=tmp_path) as broker:
        open_files = {fd.resolve() for fd in Path(f"/proc/{broker.pid}/fd").iterdir()}

    assert tmp_path / "crewlet.lock" in open_files


async def test_a_directory_that_cannot_be_written_is_refused_by_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    broker = EmbeddedBroker(BrokerConfig(store_dir=tmp_path / "file" / "store"))

    with pytest.raises(StartRefused, match=str(tmp_path / "file" / "store")):
        await broker.start()


async def test_a_broker_that_ends_at_once_is_refused_with_its_last_words(tmp_path: Path) -> None:
    program = tmp_path / "nats-server"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo v2.15.1 || { echo out of luck; exit 3; }\n')
    program.chmod(0o700)
    broker = EmbeddedBroker(BrokerConfig(store_dir=tmp_path / "store", binary=str(program)))

    with pytest.raises(StartRefused, match=r"code 3 (.|\n)*out of luck"):
        await broker.start()


@pytest.mark.slow
async def test_a_crashed_broker_is_restarted_with_its_data(broker: EmbeddedBroker) -> None:
    async with connected_wire(broker) as wire:
        jetstream = JetStream(wire)
        await jetstream.stream_create(StreamConfig(name="kept", subjects=["kept"], storage="file"))
        await jetstream.publish("kept", b"before the crash")
        crashed = broker.pid

        os.kill(crashed, signal.SIGKILL)
        await wait_until(lambda: broker.restarts == 1, what="the restart")
        await wait_until(lambda: wire.connected, what="the connection")
        kept = await jetstream.last_message("kept", "kept")

    assert kept is not None
    assert kept.data == b"before the crash"
    assert broker.pid != crashed


@pytest.mark.slow
async def test_a_crashed_broker_comes_back_on_another_port_when_its_own_was_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "BROKER_RESTART_BACKOFF_FIRST_S", 0.5)
    monkeypatch.setattr(limits, "WIRE_CONNECT_TIMEOUT_S", 0.2)
    async with running_broker() as broker, connected_wire(broker) as wire:
        taken = broker.url
        os.kill(broker.pid, signal.SIGKILL)
        squatter = socket.socket()
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        await wait_until(lambda: takes_port(squatter, int(taken.rpartition(":")[2])), what="the port")

        await wait_until(lambda: broker.restarts == 1, what="the restart")
        await wait_until(lambda: wire.connected, what="the connection")

        squatter.close()
        assert broker.url != taken


@pytest.mark.spec("E-005")
@pytest.mark.slow
@pytest.mark.parametrize(("in_memory", "kept"), [(False, b"mail"), (True, None)])
async def test_what_survives_a_restart_of_the_engine_is_what_has_a_directory(
    tmp_path: Path, in_memory: bool, kept: bytes | None
) -> None:
    stored: list[bytes | None] = []
    for _ in range(2):
        async with running_broker(store_dir=tmp_path, in_memory=in_memory) as broker, connected_wire(broker) as wire:
            jetstream = JetStream(wire)
            await jetstream.stream_create(StreamConfig(name="box", subjects=["box"], storage=broker.storage))
            found = await jetstream.last_message("box", "box")
            stored.append(None if found is None else found.data)
            await jetstream.publish("box", b"mail")

    assert stored == [None, kept]


@pytest.mark.spec("C-212")
async def test_nothing_answers_once_the_engine_has_stopped_it() -> None:
    async with running_broker() as broker:
        url, pid = broker.url, broker.pid

    assert not is_running(pid)
    with pytest.raises(Unavailable):
        await connect(url, seed=broker.seed)


async def test_a_payload_of_the_configured_size_is_accepted(broker: EmbeddedBroker) -> None:
    async with connected_wire(broker) as wire:
        assert wire.max_payload_bytes == limits.BROKER_MAX_PAYLOAD_BYTES


@pytest.mark.slow
async def test_a_stream_without_a_limit_of_its_own_takes_more_than_a_thousand_consumers() -> None:
    names = [f"seat-{number}" for number in range(1200)]
    # Consumers in memory: their number is what counts here, not the disk.
    common = ConsumerConfig(ack_policy="explicit", ack_wait=ns(30), mem_storage=True)

    async with running_broker(in_memory=True) as broker, connected_wire(broker) as wire:
        jetstream = JetStream(wire)
        await jetstream.stream_create(StreamConfig(name="many", subjects=["many.>"], storage="memory"))
        for batch in range(0, len(names), 50):
            configs = [replace(common, durable_name=n, filter_subject=f"many.{n}") for n in names[batch : batch + 50]]
            await asyncio.gather(*(jetstream.consumer_create("many", config) for config in configs))
        created = await jetstream.consumer_names("many")
        listed = await jetstream.consumer_infos("many")

    assert sorted(created) == sorted(names)
    assert len(listed) == len(names)
