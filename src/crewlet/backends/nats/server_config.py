"""The text of the embedded broker's configuration file. It holds no secret: only the public half of the one login.

What members of a cluster must know of one another's secret goes to the program in its environment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from crewlet.base import limits

__all__ = ["ClusterSettings", "LeafListener", "LeafRemotes", "ServerSettings", "server_config", "server_environment"]

_ANY_PORT: Final = -1
_SECRET_VARIABLE: Final = "BROKER_CLUSTER_SECRET"  # noqa: S105 - the name of a variable
_ROUTES_VARIABLE: Final = "BROKER_CLUSTER_ROUTES"
_LEAF_SECRET_VARIABLE: Final = "BROKER_LEAF_SECRET"  # noqa: S105 - as above
_LEAF_REMOTES_VARIABLE: Final = "BROKER_LEAF_REMOTES"
_MEMBER: Final = "member"
_SATELLITE: Final = "satellite"
_ALL_PASSES: Final = 'default_js_domain: { "$G": "" }'
"""Without it each end of a leaf's link holds back what is asked of streams and buckets, and what is written to them."""
_NO_SECRET: Final = "none-is-asked"  # noqa: S105 - what both ends show instead of one
"""A broker whose clients need a login has satellites show one too."""
_OVERSEERS: Final = "OVERSEERS"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """A cluster and this member's place in it. ``peers`` are the others, as host:port of what they listen on.

    ``advertise`` is empty where the others reach this one where it listens; ``secret`` where none is asked.
    """

    name: str
    host: str
    port: int
    peers: tuple[str, ...]
    advertise: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafListener:
    """Where the brokers of satellites reach this one; ``secret`` is empty where none is asked."""

    host: str
    port: int
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafRemotes:
    """What makes a broker a satellite's: ``members`` are those it dials, as host:port; it stores nothing itself."""

    members: tuple[str, ...]
    secret: str = field(default="", repr=False)


_DEFAULT_MAX_CONSUMERS_SINCE: Final = (2, 15)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What differs from one broker to the next. ``sync_interval_s`` of ``None``: each write is on disk before its ack.

    ``overseer_public_key`` is a login that sees how a member of a cluster stands, and nothing that is stored in it.
    ``port`` of -1 lets the operating system choose; the broker writes what it got into ``ports_dir``.
    """

    store_dir: Path
    ports_dir: Path
    log_file: Path
    user_public_key: str
    version: tuple[int, int]
    name: str = "crewlet"
    cluster: ClusterSettings | None = None
    leaf_listener: LeafListener | None = None
    leaf_remotes: LeafRemotes | None = None
    overseer_public_key: str = ""
    port: int = _ANY_PORT
    sync_interval_s: float | None = None


def server_config(settings: ServerSettings) -> str:
    """The configuration: loopback, one login, limits raised, and nothing acknowledged that is not on disk."""
    return f"""\
server_name: {_quoted(settings.name)}
listen: "127.0.0.1:{settings.port}"
ports_file_dir: {_quoted(settings.ports_dir)}
log_file: {_quoted(settings.log_file)}
logfile_size_limit: {limits.BROKER_LOG_MAX_BYTES}
logfile_max_num: 2
max_payload: {limits.BROKER_MAX_PAYLOAD_BYTES}
max_pending: {limits.BROKER_MAX_PENDING_BYTES}
authorization {{ users: [ {{ nkey: {settings.user_public_key} }} ] }}
{_jetstream(settings) if settings.leaf_remotes is None else ""}{_leafs(settings)}\
{"" if settings.cluster is None else _cluster(settings.cluster, settings.overseer_public_key)}"""


def server_environment(settings: ServerSettings) -> Mapping[str, str]:
    """The variables that the configuration refers to; they hold what secrets there are."""
    variables: dict[str, object] = {}
    if (cluster := settings.cluster) is not None:
        login = f"{_MEMBER}:{quote(cluster.secret, safe='')}@" if cluster.secret else ""
        variables[_ROUTES_VARIABLE] = [f"nats-route://{login}{peer}" for peer in cluster.peers]
        variables[_SECRET_VARIABLE] = cluster.secret
    if settings.leaf_listener is not None:
        variables[_LEAF_SECRET_VARIABLE] = settings.leaf_listener.secret or _NO_SECRET
    if (remotes := settings.leaf_remotes) is not None:
        login = f"{_SATELLITE}:{quote(remotes.secret or _NO_SECRET, safe='')}@"
        variables[_LEAF_REMOTES_VARIABLE] = [f"nats-leaf://{login}{member}" for member in remotes.members]
    # The broker reads a variable's value as it reads its file, whose language takes JSON.
    return {name: json.dumps(value) for name, value in variables.items()}


def _jetstream(settings: ServerSettings) -> str:
    sync = "always" if settings.sync_interval_s is None else _quoted(f"{round(settings.sync_interval_s * 1000)}ms")
    # Since 2.15 a stream that sets no limit of its own stops at 1,000 consumers, in silence for who publishes to it.
    raised = f"default_max_consumers: {limits.BROKER_MAX_CONSUMERS}"
    return f"""\
jetstream {{
  store_dir: {_quoted(settings.store_dir)}
  sync_interval: {sync}
  limits {{ {raised if settings.version >= _DEFAULT_MAX_CONSUMERS_SINCE else ""} }}
}}
"""


def _leafs(settings: ServerSettings) -> str:
    parts: list[str] = []
    if (listener := settings.leaf_listener) is not None:
        parts.append(f"""\
{_ALL_PASSES}
leafnodes {{
  listen: {_quoted(_address(listener.host, listener.port))}
  no_advertise: true
  authorization {{ user: {_SATELLITE}, password: ${_LEAF_SECRET_VARIABLE} }}
}}
""")
    if settings.leaf_remotes is not None:
        # A link that has died without a word is noticed within three pings.
        parts.append(f"""\
{_ALL_PASSES}
leafnodes {{
  reconnect: {limits.LEAF_RECONNECT_S}
  remotes: [ {{ urls: ${_LEAF_REMOTES_VARIABLE} }} ]
}}
ping_interval: "{limits.LEAF_PING_EVERY_S}s"
""")
    return "".join(parts)


def _address(host: str, port: int) -> str:
    bare = host.strip("[]")
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"


def _cluster(cluster: ClusterSettings, overseer_public_key: str) -> str:
    login = f"  authorization {{ user: {_MEMBER}, password: ${_SECRET_VARIABLE} }}\n" if cluster.secret else ""
    advertise = f"  advertise: {_quoted(cluster.advertise)}\n" if cluster.advertise else ""
    # Clients stay at their own broker, which alone knows their login: they are not told of the others.
    return f"""\
cluster {{
  name: {_quoted(cluster.name)}
  listen: {_quoted(_address(cluster.host, cluster.port))}
  routes: ${_ROUTES_VARIABLE}
  no_advertise: true
{login}{advertise}}}
accounts {{ {_OVERSEERS}: {{ users: [ {{ nkey: {overseer_public_key} }} ] }} }}
system_account: {_OVERSEERS}
"""


def _quoted(value: object) -> str:
    return json.dumps(str(value), ensure_ascii=False)
