"""Clustered brokers for tests: server processes on loopback that a test can kill, restart and make step down."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from crewlet.backends.nats import Connection, JetStream, connect, tether
from crewlet.backends.nats.binary import ServerBinary, find_server
from crewlet.backends.nats.jetstream_types import ApiError, StreamConfig
from crewlet.base import limits
from crewlet.base.errors import CrewletError, Unavailable
from crewlet.testing.ports import free_ports
from crewlet.testing.waiting import wait_until

__all__ = ["Cluster", "running_cluster"]

_READY_S: Final = 30.0
_LED_S: Final = 20.0
_STOP_S: Final = 5.0
_REQUEST_S: Final = 2.0
_PROBE: Final = "probe_of_the_cluster"
_LOG_TAIL_CHARS: Final = 2000


class Cluster:
    """A number of broker members with JetStream, each with ports and a store directory of its own.

    Whoever shows ``token`` is let in.

    The processes are tied to this one and ended by id. What a power cut would lose is not under test: they do not
    wait for the disk.
    """

    def __init__(self, size: int, directory: Path, binary: ServerBinary) -> None:
        self._directory = directory
        self._binary = binary
        self.token = secrets.token_urlsafe(24)
        ports = free_ports(2 * size)
        self._client_ports, self._route_ports = ports[:size], ports[size:]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def size(self) -> int:
        """How many members it has, running or not."""
        return len(self._client_ports)

    @property
    def url(self) -> str:
        """Every member, as one client dials them."""
        return ",".join(self.member_url(member) for member in range(self.size))

    def member_url(self, member: int) -> str:
        """One member alone."""
        return f"nats://127.0.0.1:{self._client_ports[member]}"

    async def connect(self, name: str, *, member: int | None = None, url: str = "") -> Connection:
        """A connection to any member, to the one that is named, or to ``url``, a way to one of them."""
        member_url = self.url if member is None else self.member_url(member)
        return await connect(url or member_url, token=self.token, name=name)

    def start(self, member: int) -> None:
        """Start one member's process; :meth:`wait_ready` says when it serves."""
        home = self._directory / f"member{member}"
        home.mkdir(exist_ok=True)
        config = home / "broker.conf"
        config.write_text(self._config(member, home), encoding="utf-8")
        with (home / "broker.log").open("ab") as log:
            self._processes[member] = subprocess.Popen(
                [*_tied(), str(self._binary.path), "-c", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def kill(self, member: int) -> None:
        """End one member at once, as a power cut of its machine would; what it stored stays."""
        process = self._processes.pop(member)
        process.kill()
        await asyncio.to_thread(process.wait, _STOP_S)

    def pause(self, member: int) -> None:
        """Stop one member where it stands, as a stalled machine would; it answers nothing and keeps its links."""
        self._processes[member].send_signal(signal.SIGSTOP)

    def resume(self, member: int) -> None:
        """Let a paused member go on; harmless where it was not paused."""
        self._processes[member].send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End every member."""
        for process in self._processes.values():
            process.terminate()
            process.send_signal(signal.SIGCONT)
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)
            process.kill()
            process.wait(_STOP_S)
        self._processes.clear()

    async def wait_ready(self) -> None:
        """Return once the cluster makes a stream on all its members. Raises ``CrewletError`` with their last words."""
        try:
            await wait_until(self._makes_a_stream, what="a cluster that makes streams", timeout_s=_READY_S)
        except TimeoutError as error:
            raise CrewletError(f"{error}; the members' last words:\n{self._last_words()}") from error

    async def leader(self, api: JetStream, stream: str) -> str:
        """The name of the member that leads ``stream`` now, or ``""`` while none does."""
        return await _leader_by(api, f"$JS.API.STREAM.INFO.{stream}")

    async def consumer_leader(self, api: JetStream, stream: str, consumer: str) -> str:
        """The same of one consumer of the stream, which may be led by another member than the stream."""
        return await _leader_by(api, f"$JS.API.CONSUMER.INFO.{stream}.{consumer}")

    async def step_down(self, api: JetStream, stream: str) -> None:
        """Make the leader of ``stream`` give up its place; returns once another leads. A no-op for one member."""
        if self.size == 1:
            return
        before = await self.leader(api, stream)
        await api.wire.request(f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}", timeout_s=_REQUEST_S)

        async def moved() -> bool:
            return await self.leader(api, stream) not in ("", before)

        await wait_until(moved, what=f"another leader of {stream} than {before}", timeout_s=_LED_S)

    async def step_consumer_down(self, api: JetStream, stream: str, consumer: str) -> None:
        """Make the leader of one consumer alone give up its place; returns once another leads it."""
        before = await self.consumer_leader(api, stream, consumer)
        await api.wire.request(f"$JS.API.CONSUMER.LEADER.STEPDOWN.{stream}.{consumer}", timeout_s=_REQUEST_S)

        async def moved() -> bool:
            return await self.consumer_leader(api, stream, consumer) not in ("", before)

        await wait_until(moved, what=f"another leader of {consumer} than {before}", timeout_s=_LED_S)

    async def _makes_a_stream(self) -> bool:
        try:
            wire = await self.connect("ready")
        except Unavailable:
            return False
        try:
            api = JetStream(wire, timeout_s=_REQUEST_S)
            await api.stream_create(StreamConfig(name=_PROBE, subjects=[_PROBE], num_replicas=self.size))
            await api.stream_delete(_PROBE)
        except (Unavailable, ApiError):
            return False
        finally:
            await wire.close()
        return True

    def _config(self, member: int, home: Path) -> str:
        routes = [f"nats://127.0.0.1:{port}" for port in self._route_ports]
        listen = f"127.0.0.1:{self._route_ports[member]}"
        # A client that a test led through a proxy must not learn of a way around it.
        clustered = {"name": "test", "listen": listen, "routes": routes, "no_advertise": True}
        settings = {
            "server_name": f"member{member}",
            "listen": f"127.0.0.1:{self._client_ports[member]}",
            "authorization": {"token": self.token},
            "max_payload": limits.BROKER_MAX_PAYLOAD_BYTES,
            "jetstream": {
                "store_dir": str(home),
                "max_memory_store": 64 * 1024 * 1024,
                "max_file_store": 64 * 1024 * 1024 * 1024,
            },
            **({"cluster": clustered} if self.size > 1 else {}),
        }
        # The broker's configuration language takes JSON as it is.
        return msgspec.json.encode(settings).decode()

    def _last_words(self) -> str:
        logs = sorted(self._directory.glob("member*/broker.log"))
        return "\n".join(log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL_CHARS:] for log in logs)


@contextmanager
def running_cluster(size: int = 3, *, binary: str = "") -> Generator[Cluster]:
    """A cluster of ``size`` members that serves, ended at the end; for a fixture outside any event loop.

    Raises ``StartRefused`` where no server program is to be had.
    """
    directory = Path(tempfile.mkdtemp(prefix="crewlet-cluster-"))
    cluster = Cluster(size, directory, find_server(binary))
    try:
        for member in range(size):
            cluster.start(member)
        with asyncio.Runner() as runner:
            runner.run(cluster.wait_ready())
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)


async def _leader_by(api: JetStream, question: str) -> str:
    with contextlib.suppress(Unavailable, ValueError):
        answer = await api.wire.request(question, timeout_s=_REQUEST_S)
        body: dict[str, Any] = json.loads(answer.payload)
        return str(body.get("cluster", {}).get("leader", ""))
    return ""


def _tied() -> list[str]:
    """The words before a program that let it die with this process, where the kernel can do that."""
    if sys.platform != "linux":
        return []
    return [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), "-1"]
