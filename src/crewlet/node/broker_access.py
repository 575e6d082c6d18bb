"""The one broker of a node and the one connection to it: started here, or dialled (D4, D5)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final

from crewlet import topics
from crewlet.backends.nats import (
    BrokerConfig,
    ClusterSettings,
    Connection,
    EmbeddedBroker,
    JetStream,
    LeafListener,
    LeafRemotes,
    MembersStreams,
    Storage,
    TlsFiles,
    connect,
    refuse_second_of_a_name,
    wait_current,
    wait_for_members,
    wait_for_peers,
)
from crewlet.base import limits
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.base.ids import Ids
from crewlet.config import ClusterConfig, NodeConfig, SatelliteConfig, StreamConfig
from crewlet.coordination.slots import LEASES

__all__ = ["BrokerAccess", "open_broker"]

_MADE_BY_MEMBERS: Final = (
    topics.STREAM_AGENT,
    topics.STREAM_NOTIFICATIONS,
    topics.STREAM_EVENTS,
    topics.STREAM_CONFIG,
    topics.STREAM_DLQ,
)


@dataclass(frozen=True, slots=True)
class BrokerAccess:
    """The connection, the API over it, and where its streams live. ``broker`` is ``None`` where it is dialled.

    ``members`` says of a satellite how those who keep its streams keep them, and is ``None`` elsewhere.
    """

    connection: Connection
    api: JetStream
    storage: Storage
    broker: EmbeddedBroker | None
    members: MembersStreams | None = None

    @property
    def backend(self) -> str:
        """What it is called on surfaces."""
        return "embedded" if self.broker is not None else "nats"


async def open_broker(config: NodeConfig, ids: Ids, stack: AsyncExitStack) -> BrokerAccess:
    """Have a broker and a connection to it; ``stack`` ends both. Raises ``StartRefused``, ``Unavailable``."""
    if config.stream.type == "nats":
        connection = await _dial(config.stream, name=config.node_id, ids=ids)
        stack.push_async_callback(connection.close)
        wait_s = limits.STREAM_CREATE_WAIT_S if config.stream.replicas > 1 else 0.0
        return BrokerAccess(connection, JetStream(connection, peers_wait_s=wait_s), "file", None)
    return await _start(config, config.stream, ids, stack)


async def _start(config: NodeConfig, stream: StreamConfig, ids: Ids, stack: AsyncExitStack) -> BrokerAccess:
    broker = EmbeddedBroker(
        BrokerConfig(
            store_dir=stream.store_dir,
            sync_interval_s=stream.sync_interval_s,
            binary="" if stream.server_binary is None else str(stream.server_binary),
            name=config.node_id,
            cluster=None if stream.cluster is None else _settings(stream.cluster),
            leaf_listener=_leaf_listener(stream),
            leaf_remotes=_leaf_remotes(stream),
        )
    )
    await broker.start()
    stack.push_async_callback(broker.stop)
    connection = await connect(broker.urls, seed=broker.seed, name=config.node_id, ids=ids)
    stack.push_async_callback(connection.close)
    if stream.satellite is not None:
        return await _through_members(stream.satellite, connection, broker)
    if stream.cluster is None:
        return BrokerAccess(connection, JetStream(connection), broker.storage, broker)
    words = broker.said_in_this_run
    await wait_for_peers(connection, cluster=stream.cluster.name, peers=stream.cluster.peers, last_words=words)
    # At once, and again later: a namesake may come in sight while this member catches up.
    await refuse_second_of_a_name(member=config.node_id, last_words=words)
    # A login of the brokers' own account, for as long as the member catches up; the node has one connection.
    overseer = await connect(broker.urls, seed=broker.overseer_seed, name=f"{config.node_id} overseer", ids=ids)
    try:
        await wait_current(overseer, member=config.node_id, wire=connection)
    finally:
        await overseer.close()
    await refuse_second_of_a_name(member=config.node_id, last_words=words)
    api = JetStream(connection, peers_wait_s=limits.STREAM_CREATE_WAIT_CLUSTERED_S)
    return BrokerAccess(connection, api, broker.storage, broker)


async def _through_members(satellite: SatelliteConfig, connection: Connection, broker: EmbeddedBroker) -> BrokerAccess:
    members = await wait_for_members(
        connection,
        members=satellite.members,
        # What it would otherwise make by its own measures; whatever else is missing is the same whoever makes it.
        streams=[*_MADE_BY_MEMBERS, topics.bucket_stream(topics.bucket(LEASES.name))],
        last_words=broker.said_in_this_run,
    )
    api = JetStream(connection, peers_wait_s=limits.STREAM_CREATE_WAIT_CLUSTERED_S)
    return BrokerAccess(connection, api, "file", broker, members)


def _leaf_listener(stream: StreamConfig) -> LeafListener | None:
    listener = stream.leaf_listener
    return None if listener is None else LeafListener(host=listener.host, port=listener.port, secret=listener.secret)


def _leaf_remotes(stream: StreamConfig) -> LeafRemotes | None:
    satellite = stream.satellite
    return None if satellite is None else LeafRemotes(members=satellite.members, secret=satellite.secret)


def _settings(cluster: ClusterConfig) -> ClusterSettings:
    return ClusterSettings(
        name=cluster.name,
        host=cluster.host,
        port=cluster.port,
        peers=cluster.peers,
        advertise=cluster.advertise,
        secret=cluster.secret,
    )


async def _dial(stream: StreamConfig, *, name: str, ids: Ids) -> Connection:
    tls = None
    if stream.tls is not None:
        ca, cert, key = (
            ("" if path is None else str(path)) for path in (stream.tls.ca, stream.tls.cert, stream.tls.key)
        )
        tls = TlsFiles(ca=ca, cert=cert, key=key)
    credentials = "" if stream.credentials is None else str(stream.credentials)
    try:
        return await connect(stream.url, credentials=credentials, token=stream.token, tls=tls, name=name, ids=ids)
    except Unavailable as error:
        raise StartRefused(str(error), "start that broker, or name another one in `stream.url`") from error
