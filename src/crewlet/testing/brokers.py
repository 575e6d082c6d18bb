"""Real brokers for tests: one started on a fresh directory, and a connection to it."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from crewlet.backends.nats import BrokerConfig, Connection, EmbeddedBroker, connect

__all__ = ["connected_wire", "running_broker"]


@asynccontextmanager
async def running_broker(
    *, store_dir: Path | None = None, in_memory: bool = False, sync_interval_s: float | None = None
) -> AsyncGenerator[EmbeddedBroker]:
    """A broker of its own, stopped at the end; on a directory that goes with it unless one is given."""
    with tempfile.TemporaryDirectory(prefix="crewlet-test-") as scratch:
        directory = None if in_memory else store_dir or Path(scratch)
        broker = EmbeddedBroker(BrokerConfig(store_dir=directory, sync_interval_s=sync_interval_s))
        await broker.start()
        try:
            yield broker
        finally:
            await broker.stop()


@asynccontextmanager
async def connected_wire(broker: EmbeddedBroker, *, name: str = "test") -> AsyncGenerator[Connection]:
    """A connection to ``broker``, closed at the end; one node's worth of client."""
    connection = await connect(broker.urls, seed=broker.seed, name=name)
    try:
        yield connection
    finally:
        await connection.close()
