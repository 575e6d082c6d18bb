"""The text of the embedded broker's configuration file. It holds no secret: only the public half of the one login.

What members of a cluster must know of one another's secret goes to the program in its environment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from crewlet.base import limits

__all__ = ["ClusterSettings", "ServerSettings", "server_config", "server_environment"]

_ANY_PORT: Final = -1
_SECRET_VARIABLE: Final = "BROKER_CLUSTER_SECRET"  # noqa: S105 - the name of a variable
_ROUTES_VARIABLE: Final = "BROKER_CLUSTER_ROUTES"
_MEMBER: Final = "member"
_OVERSEERS: Final = "OVERSEERS"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


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
    overseer_public_key: str = ""
    port: int = _ANY_PORT
    sync_interval_s: float | None = None


def server_config(settings: ServerSettings) -> str:
    """The configuration: loopback, one login, limits raised, and nothing acknowledged that is not on disk."""
    sync = "always" if settings.sync_interval_s is None else _quoted(f"{round(settings.sync_interval_s * 1000)}ms")
    # Since 2.15 a stream that sets no limit of its own stops at 1,000 consumers, in silence for who publishes to it.
    raised = f"default_max_consumers: {limits.BROKER_MAX_CONSUMERS}"
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
jetstream {{
  store_dir: {_quoted(settings.store_dir)}
  sync_interval: {sync}
  limits {{ {raised if settings.version >= _DEFAULT_MAX_CONSUMERS_SINCE else ""} }}
}}
{"" if settings.cluster is None else _cluster(settings.cluster, settings.overseer_public_key)}"""


def server_environment(settings: ServerSettings) -> Mapping[str, str]:
    """The variables that the configuration refers to; they hold the cluster's secret."""
    cluster = settings.cluster
    if cluster is None:
        return _NOTHING
    login = f"{_MEMBER}:{quote(cluster.secret, safe='')}@" if cluster.secret else ""
    routes = [f"nats-route://{login}{peer}" for peer in cluster.peers]
    # The broker reads a variable's value as it reads its file, whose language takes JSON.
    return {_ROUTES_VARIABLE: json.dumps(routes), _SECRET_VARIABLE: json.dumps(cluster.secret)}


def _cluster(cluster: ClusterSettings, overseer_public_key: str) -> str:
    bare = cluster.host.strip("[]")
    host = f"[{bare}]" if ":" in bare else bare
    login = f"  authorization {{ user: {_MEMBER}, password: ${_SECRET_VARIABLE} }}\n" if cluster.secret else ""
    advertise = f"  advertise: {_quoted(cluster.advertise)}\n" if cluster.advertise else ""
    # Clients stay at their own broker, which alone knows their login: they are not told of the others.
    return f"""\
cluster {{
  name: {_quoted(cluster.name)}
  listen: {_quoted(f"{host}:{cluster.port}")}
  routes: ${_ROUTES_VARIABLE}
  no_advertise: true
{login}{advertise}}}
accounts {{ {_OVERSEERS}: {{ users: [ {{ nkey: {overseer_public_key} }} ] }} }}
system_account: {_OVERSEERS}
"""


def _quoted(value: object) -> str:
    return json.dumps(str(value), ensure_ascii=False)
