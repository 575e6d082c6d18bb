"""From the node file to the node's configuration: the rules between fields, the defaults, the paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic_core import PydanticCustomError

from crewlet.base import limits
from crewlet.base.errors import ConfigError, Problem
from crewlet.base.ids import NodeId
from crewlet.base.node_roles import NODE_ROLES
from crewlet.config.network_addresses import is_loopback
from crewlet.config.node_cluster import cluster_of, cluster_problems, replicas_of
from crewlet.config.node_config import (
    ApiConfig,
    ApiToken,
    LoggingConfig,
    NodeAddress,
    NodeConfig,
    StreamConfig,
    TlsConfig,
)
from crewlet.config.node_file import AuthSection, NodeFile, check_node_id
from crewlet.config.node_file_part import parse_duration_s
from crewlet.config.node_file_stream import StreamSection
from crewlet.config.node_leaf import leaf_listener_of, leaf_problems, satellite_of

__all__ = ["address_of", "settle"]

_EVENT_RETENTION_HOURS: Final = 720
_DEFAULT_NODE_ID: Final = "node-0"
_NODE_ID_VARIABLE: Final = "CREWLET_NODE_ID"
_TOKEN_FILE: Final = "operator-token"  # noqa: S105 - a file's name
_SCHEMES: Final = {"nats", "tls", "ws", "wss"}
_DIAL_ONLY: Final = ("url", "credentials", "token", "tls")


def settle(written: NodeFile, file: Path, env: Mapping[str, str]) -> NodeConfig:
    """The configuration of a well-formed node file. Raises ``ConfigError`` with every rule that it breaks."""
    node_id = written.node.id or env.get(_NODE_ID_VARIABLE, "") or _DEFAULT_NODE_ID
    problems = (
        *_node_id_problems(node_id, is_written=bool(written.node.id)),
        *_stream_problems(written.stream),
        *cluster_problems(written),
        *leaf_problems(written),
        *_coordination_problems(written),
        *_api_problems(written.api.host, written.api.port, written.api.auth),
    )
    if problems:
        raise ConfigError(*problems)
    paths = _paths(file, env)
    data_dir = paths.of(written.data_dir)
    return NodeConfig(
        file=file.absolute(),
        data_dir=data_dir,
        node_id=NodeId(node_id),
        roles=written.node.roles or NODE_ROLES,
        labels=written.node.labels,
        max_concurrent=written.node.max_concurrent or limits.MAX_CONCURRENT_TURNS,
        coordination=written.coordination.type,
        lease_ttl_s=float(written.coordination.lease_ttl_seconds or limits.LEASE_TTL_S),
        stream=_stream(written.stream, paths, data_dir),
        # A name of its own: what a node has kept is not lost when it is made a satellite.
        store_path=paths.maybe(written.store.path)
        or data_dir / ("scratch.db" if written.store.scratch else "crewlet.db"),
        store_scratch=written.store.scratch,
        api=ApiConfig(
            host=written.api.host,
            port=written.api.port,
            tokens=tuple(ApiToken(token.id, token.token) for token in written.api.auth.tokens),
            token_file=data_dir / _TOKEN_FILE,
            allow_anonymous_read=written.api.auth.allow_anonymous_read,
        ),
        logging=LoggingConfig(written.logging.level, written.logging.format),
    )


def address_of(written: NodeFile, file: Path, env: Mapping[str, str]) -> NodeAddress:
    """Where the node of a file listens, and where its first token lies."""
    token_file = _paths(file, env).of(written.data_dir) / _TOKEN_FILE
    return NodeAddress(written.api.host, written.api.port, token_file)


@dataclass(frozen=True, slots=True)
class _Paths:
    """Paths as they are written: relative to the file's folder, or under the person's home."""

    folder: Path
    home: str

    def of(self, written: str) -> Path:
        if self.home and (written == "~" or written.startswith("~/")):
            written = self.home + written[1:]
        return (self.folder / written).resolve()

    def maybe(self, written: str) -> Path | None:
        return self.of(written) if written else None


def _paths(file: Path, env: Mapping[str, str]) -> _Paths:
    return _Paths(file.absolute().parent, env.get("HOME", ""))


def _stream(written: StreamSection, paths: _Paths, data_dir: Path) -> StreamConfig:
    is_embedded = written.type == "embedded"
    satellite = satellite_of(written)
    kept_in = data_dir / ("stream" if satellite is None else "leaf")
    store_dir = kept_in if written.store_dir is None else paths.maybe(written.store_dir)
    tls = TlsConfig(paths.maybe(written.tls.ca), paths.maybe(written.tls.cert), paths.maybe(written.tls.key))
    return StreamConfig(
        type=written.type,
        store_dir=store_dir if is_embedded else None,
        server_binary=paths.maybe(written.server_binary),
        sync_interval_s=None if written.sync == "always" else parse_duration_s(written.sync),
        event_retention_s=3600.0 * (written.event_retention_hours or _EVENT_RETENTION_HOURS),
        mailbox_max_bytes=written.mailbox_max_bytes,
        event_max_bytes=written.event_max_bytes,
        config_max_bytes=written.config_max_bytes,
        dead_letter_max_bytes=written.dead_letter_max_bytes,
        journal_max_bytes=written.journal_max_bytes,
        replicas=replicas_of(written),
        cluster=cluster_of(written),
        leaf_listener=leaf_listener_of(written),
        satellite=satellite,
        url=written.url,
        credentials=paths.maybe(written.credentials),
        token=written.token,
        tls=None if tls == TlsConfig() else tls,
    )


def _node_id_problems(node_id: str, *, is_written: bool) -> Iterator[Problem]:
    try:
        check_node_id(node_id)
    except PydanticCustomError as error:
        context = error.context or {}
        origin = "" if is_written else f" (from {_NODE_ID_VARIABLE})"
        yield Problem("node.id", f"{node_id!r}{origin} {context['problem']}", str(context["remedy"]))


def _stream_problems(stream: StreamSection) -> Iterator[Problem]:
    if stream.type == "embedded":
        for field in _DIAL_ONLY:
            if getattr(stream, field) != StreamSection.model_fields[field].default:
                yield Problem(f"stream.{field}", "is for type nats only", "remove it, or set `stream.type: nats`")
    else:
        yield from _dial_problems(stream)


def _coordination_problems(written: NodeFile) -> Iterator[Problem]:
    if written.stream.type == "nats" and written.coordination.type == "local":
        yield Problem(
            "coordination.type",
            "leases would be this process's own, beside a broker that other nodes may use: each would run every seat",
            "set `coordination.type: embedded-kv`",
        )


def _dial_problems(stream: StreamSection) -> Iterator[Problem]:
    if not stream.url:
        yield Problem("stream.url", "is required for type nats", "for example nats://127.0.0.1:4222")
    for url in stream.url.split(",") if stream.url else ():
        scheme, mark, _rest = url.strip().partition("://")
        if mark and scheme not in _SCHEMES:
            yield Problem("stream.url", f"the scheme {scheme!r} is not one of a broker", "write nats:// or tls://")
    if stream.store_dir is not None:
        yield Problem("stream.store_dir", "is for type embedded only: that broker keeps its own files", "remove it")
    if stream.server_binary:
        yield Problem(
            "stream.server_binary", "is for type embedded only: that broker is started elsewhere", "remove it"
        )
    if bool(stream.tls.cert) != bool(stream.tls.key):
        yield Problem("stream.tls", "cert and key come together", "give both or neither")


def _api_problems(host: str, port: int, auth: AuthSection) -> Iterator[Problem]:
    first_of: dict[str, int] = {}
    for index, token in enumerate(auth.tokens):
        path = f"api.auth.tokens[{index}]"
        if token.id in first_of:
            yield Problem(f"{path}.id", f"{token.id!r} is already api.auth.tokens[{first_of[token.id]}]", "rename one")
        if token.id == "anonymous":
            yield Problem(f"{path}.id", "'anonymous' is whoever shows no token", "choose another id")
        if any(token.token == other.token for other in auth.tokens[:index]):
            yield Problem(f"{path}.token", "is the same as an earlier one", "give each id a token of its own")
        if port != 0 and len(token.token) < limits.API_TOKEN_MIN_CHARS and not is_loopback(host):
            yield Problem(
                f"{path}.token",
                f"has under {limits.API_TOKEN_MIN_CHARS} characters, and {host} can be reached from other machines",
                "write a random one: `openssl rand -hex 32`",
            )
        first_of.setdefault(token.id, index)
    if port != 0 and not auth.tokens and not is_loopback(host):
        yield Problem(
            "api.auth.tokens",
            f"{host} can be reached from other machines, and no token guards it",
            "add a token, or set `api.host: 127.0.0.1`",
        )
