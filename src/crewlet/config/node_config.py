"""What a node runs with: the node file settled, every default filled in and every path absolute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from crewlet.base.ids import NodeId

__all__ = [
    "ApiConfig",
    "ApiToken",
    "ClusterConfig",
    "LeafListenerConfig",
    "LoggingConfig",
    "NodeAddress",
    "NodeConfig",
    "SatelliteConfig",
    "StreamConfig",
    "TlsConfig",
]


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """Files for TLS towards a broker that is dialled; ``cert`` and ``key`` come together."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """The cluster that the embedded broker is a member of. ``peers`` are the other members, each as host:port.

    ``advertise`` is empty where the others reach this member at ``host`` and ``port``; ``secret`` where none is asked.
    """

    name: str
    host: str
    port: int
    peers: tuple[str, ...]
    advertise: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafListenerConfig:
    """Where satellites reach the embedded broker; ``secret`` is empty where none is asked."""

    host: str
    port: int
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SatelliteConfig:
    """Whom a satellite dials, each as host:port, and what it shows them; ``secret`` is empty where none is asked."""

    members: tuple[str, ...]
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfig:
    """The broker. ``store_dir`` of ``None`` is memory (embedded) or the broker's own business (nats).

    ``sync_interval_s`` of ``None``: what is acknowledged is on the disk. ``server_binary`` replaces the program that
    comes packaged. ``tls`` is ``None`` where none is configured. A ``max_bytes`` of 0 leaves the size to the queue.
    ``cluster`` is ``None`` for a broker of this node alone; ``replicas`` is how many brokers keep each message.
    ``leaf_listener`` is where satellites reach it; ``satellite`` is set on one, whose streams are its members' and
    whose ``store_dir`` holds no more than what its broker logs.
    """

    type: Literal["embedded", "nats"]
    store_dir: Path | None
    sync_interval_s: float | None
    event_retention_s: float
    mailbox_max_bytes: int = 0
    event_max_bytes: int = 0
    config_max_bytes: int = 0
    dead_letter_max_bytes: int = 0
    journal_max_bytes: int = 0
    replicas: int = 1
    cluster: ClusterConfig | None = None
    leaf_listener: LeafListenerConfig | None = None
    satellite: SatelliteConfig | None = None
    server_binary: Path | None = None
    url: str = field(default="", repr=False)
    credentials: Path | None = None
    token: str = field(default="", repr=False)
    tls: TlsConfig | None = None

    @property
    def is_in_memory(self) -> bool:
        """Whether the engine's own broker forgets everything when it ends."""
        return self.type == "embedded" and self.store_dir is None


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A bearer token and whom it speaks for."""

    id: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiConfig:
    """The HTTP API. ``port`` 0 means no listener.

    Without ``tokens`` the address is loopback, and a first one is to be made and kept in ``token_file``.
    """

    host: str
    port: int
    tokens: tuple[ApiToken, ...]
    token_file: Path
    allow_anonymous_read: bool


@dataclass(frozen=True, slots=True)
class LoggingConfig:
    """What is logged, and how."""

    level: Literal["debug", "info", "warn", "error"]
    format: Literal["console", "text", "json"]


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """What whoever talks to a node needs of its file. ``port`` 0 means that it has no API."""

    host: str
    port: int
    token_file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """One node, as its file and environment settle it."""

    file: Path
    data_dir: Path
    node_id: NodeId
    roles: tuple[str, ...]
    labels: Mapping[str, str]
    max_concurrent: int
    coordination: Literal["local", "embedded-kv"]
    lease_ttl_s: float
    stream: StreamConfig
    store_path: Path
    store_scratch: bool
    api: ApiConfig
    logging: LoggingConfig

    @property
    def keeps_events(self) -> bool:
        """Whether what happens here is written to this node's database, and that outlives the process."""
        return "data" in self.roles
