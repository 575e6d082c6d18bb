"""The one broker of a node and the one connection to it: started here, or dialled (D4, D5)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass

from crewlet.backends.nats import BrokerConfig, Connection, EmbeddedBroker, JetStream, Storage, TlsFiles, connect
from crewlet.base.ids import Ids
from crewlet.config import NodeConfig, StreamConfig

__all__ = ["BrokerAccess", "open_broker"]


@dataclass(frozen=True, slots=True)
class BrokerAccess:
    """The connection, the API over it, and where its streams live. ``broker`` is ``None`` where it is dialled."""

    connection: Connection
    api: JetStream
    storage: Storage
    broker: EmbeddedBroker | None

    @property
    def backend(self) -> str:
        """What it is called on surfaces."""
        return "embedded" if self.broker is not None else "nats"


async def open_broker(config: NodeConfig, ids: Ids, stack: AsyncExitStack) -> BrokerAccess:
    """Have a broker and a connection to it; ``stack`` ends both. Raises ``StartRefused``, ``Unavailable``."""
    if config.stream.type == "nats":
        connection = await _dial(config.stream, name=config.node_id, ids=ids)
        stack.push_async_callback(connection.close)
        return BrokerAccess(connection, JetStream(connection), "file", None)
    broker = EmbeddedBroker(
        BrokerConfig(
            store_dir=config.stream.store_dir,
            sync_interval_s=config.stream.sync_interval_s,
            binary="" if config.stream.server_binary is None else str(config.stream.server_binary),
        )
    )
    await broker.start()
    stack.push_async_callback(broker.stop)
    connection = await connect(broker.urls, seed=broker.seed, name=config.node_id, ids=ids)
    stack.push_async_callback(connection.close)
    return BrokerAccess(connection, JetStream(connection), broker.storage, broker)


async def _dial(stream: StreamConfig, *, name: str, ids: Ids) -> Connection:
    tls = None
    if stream.tls is not None:
        ca, cert, key = (
            ("" if path is None else str(path)) for path in (stream.tls.ca, stream.tls.cert, stream.tls.key)
        )
        tls = TlsFiles(ca=ca, cert=cert, key=key)
    credentials = "" if stream.credentials is None else str(stream.credentials)
    return await connect(stream.url, credentials=credentials, token=stream.token, tls=tls, name=name, ids=ids)
