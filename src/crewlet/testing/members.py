"""Embedded brokers of one cluster for tests: each started, ended and killed by itself, on loopback ports of its own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from crewlet.backends.nats import BrokerConfig, ClusterSettings, Connection, EmbeddedBroker, connect
from crewlet.backends.nats import wait_current as _wait_current
from crewlet.backends.nats import wait_for_peers as _wait_for_peers
from crewlet.testing.ports import free_ports

__all__ = ["Member", "member_configs", "running_members", "with_secret"]


@dataclass(slots=True)
class Member:
    """One broker of a cluster and this process's connection to it, while it runs."""

    config: BrokerConfig
    broker: EmbeddedBroker
    wire: Connection | None = None

    @property
    def name(self) -> str:
        """What the others know it by."""
        return self.config.name

    @property
    def connection(self) -> Connection:
        """The connection, which must stand."""
        assert self.wire is not None, f"{self.name} does not run"
        return self.wire

    async def start(self) -> None:
        """Run a broker on the member's store; :meth:`wait_ready` says when it serves."""
        self.broker = EmbeddedBroker(self.config)
        await self.broker.start()
        self.wire = await connect(self.broker.urls, seed=self.broker.seed, name=self.name)

    async def wait_ready(self, *, timeout_s: float = 60.0) -> None:
        """Return once it serves and holds what the others hold. Raises ``StartRefused``."""
        cluster = self.config.cluster
        assert cluster is not None, "a member has a cluster"
        await _wait_for_peers(
            self.connection,
            cluster=cluster.name,
            peers=cluster.peers,
            last_words=self.broker.last_words,
            timeout_s=timeout_s,
        )
        overseer = await connect(self.broker.urls, seed=self.broker.overseer_seed, name="overseer")
        try:
            await _wait_current(overseer, member=self.name, wire=self.connection, quiet_s=timeout_s)
        finally:
            await overseer.close()

    async def stop(self) -> None:
        """End it as a node does."""
        wire, self.wire = self.wire, None
        if wire is not None:
            await wire.close()
        await self.broker.stop()

    async def kill(self) -> None:
        """End it as a power cut of its machine would: the broker, and what would start it again."""
        if self.broker.pid:
            os.kill(self.broker.pid, signal.SIGKILL)
        await self.stop()


def member_configs(folder: Path, size: int = 3, *, secret: str = "of-the-members-of-a-test") -> list[BrokerConfig]:  # noqa: S107 - a fake
    """What ``size`` members run with that are one cluster; each keeps its store in a folder of its own."""
    ports = free_ports(size)
    return [
        BrokerConfig(
            store_dir=folder / f"member-{index}",
            # What a power cut would lose is not under test.
            sync_interval_s=60.0,
            name=f"member-{index}",
            cluster=ClusterSettings(
                name="test",
                host="127.0.0.1",
                port=port,
                peers=tuple(f"127.0.0.1:{other}" for other in ports if other != port),
                secret=secret,
            ),
        )
        for index, port in enumerate(ports)
    ]


@asynccontextmanager
async def running_members(configs: Sequence[BrokerConfig]) -> AsyncGenerator[list[Member]]:
    """Members that serve, ended at the end, whatever became of them meanwhile."""
    members = [Member(config, EmbeddedBroker(config)) for config in configs]
    try:
        for member in members:
            await member.start()
        await asyncio.gather(*(member.wait_ready() for member in members))
        yield members
    finally:
        for member in members:
            await member.stop()


def with_secret(config: BrokerConfig, secret: str) -> BrokerConfig:
    """The same member showing another secret."""
    assert config.cluster is not None, "a member has a cluster"
    return replace(config, cluster=replace(config.cluster, secret=secret))
