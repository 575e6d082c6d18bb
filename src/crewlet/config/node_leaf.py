"""The rules of satellites: who listens for them, what one dials, and what it cannot have of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from crewlet.base.errors import Problem
from crewlet.config.network_addresses import host_and_port, is_loopback
from crewlet.config.node_cluster import is_clustered
from crewlet.config.node_config import LeafListenerConfig, SatelliteConfig
from crewlet.config.node_file import NodeFile
from crewlet.config.node_file_stream import LeafSection, StreamSection

__all__ = ["leaf_listener_of", "leaf_problems", "satellite_of"]

_SCHEMES: Final = ("nats-leaf://", "nats://")
_MEMBERS_BUSINESS: Final = (
    "store_dir",
    "sync",
    "replicas",
    "event_retention_hours",
    "mailbox_max_bytes",
    "event_max_bytes",
    "config_max_bytes",
    "dead_letter_max_bytes",
    "journal_max_bytes",
)
_ITS_ROLES: Final = "roles: [seats]"


def leaf_listener_of(stream: StreamSection) -> LeafListenerConfig | None:
    """Where satellites reach the node of a sound file; ``None`` where it takes none."""
    leaf = stream.leaf
    return LeafListenerConfig(host=leaf.host, port=leaf.port, secret=leaf.secret) if leaf.port else None


def satellite_of(stream: StreamSection) -> SatelliteConfig | None:
    """Whom the satellite of a sound file dials; ``None`` where it is none."""
    leaf = stream.leaf
    if not leaf.urls:
        return None
    addresses = [address for url in leaf.urls if (address := _address(url)) is not None]
    return SatelliteConfig(members=tuple(f"{host}:{port}" for host, port in addresses), secret=leaf.secret)


def leaf_problems(written: NodeFile) -> Iterator[Problem]:
    """Each rule of satellites and of those who take them that the file breaks."""
    stream = written.stream
    if stream.leaf != LeafSection() and stream.type == "nats":
        yield Problem("stream.leaf", "is for type embedded only: dial that broker itself", "remove it")
    elif stream.leaf.urls:
        yield from _satellite_problems(written)
        return
    elif stream.leaf.port:
        yield from _listener_problems(written)
    elif stream.leaf != LeafSection():
        yield Problem(
            "stream.leaf",
            "says neither where satellites reach this node nor whom it dials as one",
            "set `port` at a node that keeps streams, `urls` at a satellite",
        )
    if written.node.roles and "data" not in written.node.roles:
        yield Problem(
            "node.roles",
            "only a satellite leaves out the role data, and this node is none",
            "add data, or name the nodes that keep the streams in `stream.leaf.urls`",
        )
    if written.store.scratch:
        yield Problem("store.scratch", "would delete what this node keeps at every start", "remove it")


def _satellite_problems(written: NodeFile) -> Iterator[Problem]:
    stream, leaf = written.stream, written.stream.leaf
    for index, url in enumerate(leaf.urls):
        if (address := _address(url)) is None:
            at = "holds a login; the secret has its own field" if "@" in url else "is no address of a node"
            yield Problem(f"stream.leaf.urls[{index}]", at, "write nats-leaf://host:port")
        elif not leaf.secret and not is_loopback(address[0]):
            yield Problem(
                "stream.leaf.secret",
                f"{address[0]} is another machine, which asks for one",
                "set the one of that node's file, `${VAR}` is allowed",
            )
            break
    if leaf.port:
        yield Problem("stream.leaf.port", "is for nodes that keep streams, and a satellite keeps none", "remove it")
    if is_clustered(stream):
        yield Problem("stream.cluster", "members keep streams, and a satellite keeps none", "remove it, or `leaf.urls`")
    for field in _MEMBERS_BUSINESS:
        if getattr(stream, field) != StreamSection.model_fields[field].default:
            yield Problem(f"stream.{field}", "is up to those who keep the streams; a satellite keeps none", "remove it")
    if not written.node.roles or "data" in written.node.roles:
        yield Problem("node.roles", "a satellite keeps nothing, so it cannot have the role data", f"write {_ITS_ROLES}")
    if not written.store.scratch:
        yield Problem(
            "store.scratch", "a satellite's database is a new one at every start", "agree to that: `scratch: true`"
        )
    yield from _lease_problems(written, "leases would be this process's own, and those who keep the streams have seats")


def _listener_problems(written: NodeFile) -> Iterator[Problem]:
    stream, leaf = written.stream, written.stream.leaf
    if not leaf.secret and not is_loopback(leaf.host):
        yield Problem(
            "stream.leaf.secret",
            f"{leaf.host} can be reached from other machines, and whoever joins reads and writes everything",
            "set the same long secret at each satellite, `${VAR}` is allowed, or set `stream.leaf.host: 127.0.0.1`",
        )
    taken = {"the API": written.api.port, "the members": stream.cluster.port}
    for whose, port in taken.items():
        if port == leaf.port:
            yield Problem("stream.leaf.port", f"{port} is the port for {whose} too", "give each a port of its own")
    if stream.store_dir is not None and not stream.store_dir:
        yield Problem(
            "stream.store_dir", "satellites live by streams that outlast this process", "remove it, or name a folder"
        )
    if not is_clustered(stream):
        yield from _lease_problems(written, "leases would be this process's own, and satellites take seats too")


def _lease_problems(written: NodeFile, why: str) -> Iterator[Problem]:
    if written.coordination.type == "local":
        yield Problem("coordination.type", f"{why}: each would run every seat", "set `coordination.type: embedded-kv`")


def _address(url: str) -> tuple[str, int] | None:
    for scheme in _SCHEMES:
        url = url.removeprefix(scheme)
    return host_and_port(url.rstrip("/"))
