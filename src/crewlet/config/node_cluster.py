"""The rules of a clustered broker: who its members are, how many copies they keep, and what does not go together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from pydantic_core import PydanticCustomError

from crewlet.base import limits
from crewlet.base.errors import Problem
from crewlet.config.network_addresses import WILDCARDS, host_and_port, is_loopback
from crewlet.config.node_config import ClusterConfig
from crewlet.config.node_file import NodeFile
from crewlet.config.node_file_part import parse_duration_s
from crewlet.config.node_file_stream import ClusterSection, StreamSection

__all__ = ["cluster_of", "cluster_problems", "is_clustered", "replicas_of"]

_SCHEMES: Final = ("nats-route://", "nats://")
_THREE: Final = 3
_THIS_MACHINE: Final = "loopback"

Address = tuple[str, int]


def is_clustered(stream: StreamSection) -> bool:
    """Whether the file speaks of a cluster at all."""
    return stream.cluster != ClusterSection()


def replicas_of(stream: StreamSection) -> int:
    """How many members keep each message: what is written, else three in a cluster of our own and one elsewhere."""
    return stream.replicas or (_THREE if is_clustered(stream) else 1)


def cluster_of(stream: StreamSection) -> ClusterConfig | None:
    """The cluster of a sound file; ``None`` where the broker is alone or somebody else's."""
    if not is_clustered(stream):
        return None
    cluster = stream.cluster
    return ClusterConfig(
        name=cluster.name,
        host=cluster.host,
        port=cluster.port,
        peers=tuple(f"{host}:{port}" for host, port in _others(cluster)),
        advertise=cluster.advertise,
        secret=cluster.secret,
    )


def cluster_problems(written: NodeFile) -> Iterator[Problem]:
    """Each rule of a cluster and its copies that the file breaks."""
    stream = written.stream
    if is_clustered(stream):
        if stream.type == "nats":
            yield Problem(
                "stream.cluster", "is for type embedded only: that broker has members of its own", "remove it"
            )
        else:
            yield from _shape_problems(stream.cluster)
            yield from _surroundings_problems(written)
    elif stream.type == "embedded" and replicas_of(stream) > 1:
        yield Problem(
            "stream.replicas",
            f"{replicas_of(stream)} copies need as many brokers, and this one is alone",
            "describe the cluster in `stream.cluster`, or set it to 1",
        )
    yield from _sync_problems(stream)
    yield from _ttl_problems(written)


def _shape_problems(cluster: ClusterSection) -> Iterator[Problem]:
    if not cluster.name:
        yield Problem("stream.cluster.name", "is required in a cluster", "the same name in every member's file")
    if not cluster.port:
        yield Problem("stream.cluster.port", "is required in a cluster", "where the other members reach this one")
    if not cluster.secret and not is_loopback(cluster.host):
        yield Problem(
            "stream.cluster.secret",
            f"{cluster.host} can be reached from other machines, and whoever joins reads and writes everything",
            "set the same long secret in every member, `${VAR}` is allowed, or set `stream.cluster.host: 127.0.0.1`",
        )
    if cluster.advertise and host_and_port(cluster.advertise) is None:
        yield Problem("stream.cluster.advertise", "is no host:port", "for example 10.0.0.1:6222")
    yield from _peer_problems(cluster)


def _peer_problems(cluster: ClusterSection) -> Iterator[Problem]:
    malformed = [index for index, peer in enumerate(cluster.peers) if _address(peer) is None]
    for index in malformed:
        at = (
            "holds a login; the secret has its own field"
            if "@" in cluster.peers[index]
            else "is no address of a member"
        )
        yield Problem(f"stream.cluster.peers[{index}]", at, "write host:port or nats://host:port")
    if malformed:
        return
    for index, peer in enumerate(cluster.peers):
        if _address(peer) in [_address(other) for other in cluster.peers[:index]]:
            yield Problem(f"stream.cluster.peers[{index}]", f"{peer} is there twice", "name each member once")
            return
    members = len(_others(cluster)) + 1
    if members == limits.CLUSTER_MEMBERS_MIN - 1:
        yield Problem(
            "stream.cluster.peers",
            "two members are worse than one: when either is gone, the other has no majority and takes nothing",
            "have one or three members: name two others, or remove `stream.cluster`",
        )
    elif members < limits.CLUSTER_MEMBERS_MIN:
        yield Problem(
            "stream.cluster.peers",
            "names no other member",
            "name the two others, as host:port; or remove `stream.cluster` for a node that is alone",
        )
    elif members > limits.CLUSTER_MEMBERS_MAX:
        yield Problem(
            "stream.cluster.peers",
            f"{members} members vote on every write; more than {limits.CLUSTER_MEMBERS_MAX} make it slower, not safer",
            "name at most four others; further nodes dial the cluster's own broker with `stream.type: nats`",
        )


def _surroundings_problems(written: NodeFile) -> Iterator[Problem]:
    stream, cluster = written.stream, written.stream.cluster
    if stream.store_dir is not None and not stream.store_dir:
        yield Problem(
            "stream.store_dir",
            "a member that forgets at its end what it had confirmed can undo what the others count on",
            "remove it, or name a folder",
        )
    if written.coordination.type == "local":
        yield Problem(
            "coordination.type",
            "leases would be this process's own, in a cluster that other nodes use: each would run every seat",
            "set `coordination.type: embedded-kv`",
        )
    if cluster.port and cluster.port == written.api.port:
        yield Problem("stream.cluster.port", f"{cluster.port} is the API's port too", "give each a port of its own")


def _sync_problems(stream: StreamSection) -> Iterator[Problem]:
    if stream.sync == "always":
        return
    try:
        seconds = parse_duration_s(stream.sync)
    except PydanticCustomError:
        return  # Refused where it is read.
    if stream.type == "nats":
        yield Problem("stream.sync", "is for type embedded only: that broker has its own setting", "remove it")
    elif not is_clustered(stream) or replicas_of(stream) < _THREE:
        yield Problem(
            "stream.sync",
            "a duration loses acknowledged mail when the machine fails, unless three replicas hold it",
            "set it to always",
        )
    elif _one_machine_has_the_majority(stream.cluster):
        yield Problem(
            "stream.sync",
            "most members are on one machine: when that fails, acknowledged mail that is not on a disk is lost",
            "set it to always, or have each member on a machine of its own",
        )
    elif not limits.BROKER_SYNC_MIN_S <= seconds <= limits.BROKER_SYNC_MAX_S:
        least, most = limits.BROKER_SYNC_MIN_S, limits.BROKER_SYNC_MAX_S
        yield Problem("stream.sync", f"{stream.sync} is outside {least:g} s to {most:g} s", "for example 1s, or always")


def _ttl_problems(written: NodeFile) -> Iterator[Problem]:
    seconds, least = written.coordination.lease_ttl_seconds, limits.LEASE_TTL_REPLICATED_MIN_S
    if seconds and seconds < least and replicas_of(written.stream) >= _THREE:
        yield Problem(
            "coordination.lease_ttl_seconds",
            f"{seconds} s is too short for three replicas: when a member dies, writes wait several seconds for a new"
            " leader, and healthy nodes would lose their seats over it",
            f"write {least:g} or more, or 0 for {limits.LEASE_TTL_S:g}",
        )


def _others(cluster: ClusterSection) -> list[Address]:
    """The other members, in the order they are written; this one may stand among them."""
    itself = {_known((cluster.host, cluster.port))}
    if (advertised := host_and_port(cluster.advertise)) is not None:
        itself.add(_known(advertised))
    addresses = [address for peer in cluster.peers if (address := _address(peer)) is not None]
    return [address for address in addresses if _known(address) not in itself]


def _address(peer: str) -> Address | None:
    for scheme in _SCHEMES:
        peer = peer.removeprefix(scheme)
    return host_and_port(peer.rstrip("/"))


def _known(address: Address) -> Address:
    host, port = address
    return (_THIS_MACHINE if is_loopback(host) else host.lower(), port)


def _one_machine_has_the_majority(cluster: ClusterSection) -> bool:
    """Whether one host's end is the end of the quorum, as far as the addresses tell."""
    mine = host_and_port(cluster.advertise)
    own = mine[0] if mine is not None else cluster.host
    hosts = Counter(_known(address)[0] for address in _others(cluster))
    hosts[_known((own, 0))[0] if own not in WILDCARDS else ""] += 1
    return max(hosts.values()) > hosts.total() // 2
