"""The node file's stream section: the broker that the engine starts itself, or one that it dials."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from crewlet.base import limits
from crewlet.config.node_file_part import FromText, parse_duration_s
from crewlet.org import DocumentPart, Later, Required, refused

__all__ = ["ClusterSection", "LeafSection", "StreamSection", "TlsSection"]

_CLUSTER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PRINTABLE: Final = re.compile(r"[!-~]+")


def _replicas(replicas: int) -> int:
    if replicas not in (0, 1, 3):
        raise refused(
            f"{replicas} copies are not offered: two survive no more than one does",
            "write 1 or 3, or 0 for the default",
        )
    return replicas


def _cluster_name(name: str) -> str:
    if name and _CLUSTER_NAME.fullmatch(name) is None:
        raise refused("is no valid name of a cluster", "a letter or digit, then letters, digits, `.`, `_`, `-`")
    return name


def _secret(secret: str) -> str:
    if secret and (_PRINTABLE.fullmatch(secret) is None or len(secret) < limits.CLUSTER_SECRET_MIN_CHARS):
        raise refused(
            f"is no secret: at least {limits.CLUSTER_SECRET_MIN_CHARS} printable ASCII characters without spaces",
            "make one, for example with `openssl rand -hex 24`, the same for every member",
        )
    return secret


def _sync(text: str) -> str:
    if text != "always":
        parse_duration_s(text)
    return text


def _size(size: int) -> int:
    if size and not limits.STREAM_MIN_BYTES <= size <= limits.STREAM_MAX_BYTES:
        least, most = limits.STREAM_MIN_BYTES, limits.STREAM_MAX_BYTES
        raise refused(f"{size:,} bytes is no size for a stream", f"write {least:,} to {most:,}, or 0 for the default")
    return size


_StreamSize = Annotated[int, AfterValidator(_size), FromText()]


class TlsSection(DocumentPart):
    """TLS towards the broker that is dialled. The server's certificate is always checked."""

    ca: str = ""
    cert: str = ""
    key: str = ""
    """The path of the key's file."""


class ClusterSection(DocumentPart):
    """The embedded brokers of a fleet as members of one cluster. Every member has a node file of its own."""

    name: Annotated[str, AfterValidator(_cluster_name)] = ""
    """The same in every member."""
    host: Required = "127.0.0.1"
    """Where this member listens for the others."""
    port: Annotated[int, Field(ge=0, le=65535), FromText()] = 0
    """The port that it listens on for them; required in a cluster."""
    peers: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """The other members, each as host:port or nats://host:port of what it listens on for members."""
    advertise: str = ""
    """host:port under which the others reach this member, where that is not where it listens."""
    secret: Annotated[str, AfterValidator(_secret)] = Field(default="", repr=False)
    """The same in every member; who knows it may join. Required where ``host`` is not loopback."""


class LeafSection(DocumentPart):
    """Satellites: nodes that keep no stream of their own and work through those that do.

    A node that keeps streams says where satellites reach it (``port``), a satellite whom it dials (``urls``).
    """

    urls: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """A satellite only: the nodes that keep the streams, each as nats-leaf://host:port; the first that answers."""
    host: Required = "127.0.0.1"
    """Where this node listens for satellites."""
    port: Annotated[int, Field(ge=0, le=65535), FromText()] = 0
    """The port that it listens on for them; 0: it takes none."""
    secret: Annotated[str, AfterValidator(_secret)] = Field(default="", repr=False)
    """The same at both ends; who knows it may join. Required where it is asked for or shown beyond this machine."""


class StreamSection(DocumentPart):
    """Where mail and records are kept."""

    type: Literal["embedded", "nats"] = "embedded"
    """``embedded``: the engine runs its own broker on the loopback interface. ``nats``: it dials ``url``."""
    store_dir: str | None = None
    """Embedded only. Absent: stream in the data directory. Empty (""): in memory, lost at the end of the process."""
    server_binary: str = ""
    """Embedded only: the nats-server program, where the packaged one does not serve this machine."""
    sync: Annotated[str, AfterValidator(_sync)] = "always"
    """Embedded only: when what was acknowledged is on the disk. A duration needs three replicas on three machines."""
    url: str = Field(default="", repr=False)
    """Nats only; a list separated by commas will do."""
    credentials: str = ""
    """Nats only: the path of a credentials file."""
    token: str = Field(default="", repr=False)
    """Nats only."""
    tls: TlsSection = TlsSection()
    """Nats only."""
    event_retention_hours: Annotated[int, Field(ge=0), FromText()] = 0
    """How long events are kept; 0 means 720 hours."""
    mailbox_max_bytes: _StreamSize = 0
    """The most bytes of waiting mail: of the seats' mailboxes together, and again of deliveries that wait to be routed.
    A full one refuses what comes. 0 means 4 GiB, or less where the broker has less; so below."""
    event_max_bytes: _StreamSize = 0
    """The most bytes of events; the oldest give way before their age. 0 means 8 GiB."""
    config_max_bytes: _StreamSize = 0
    """The most bytes of configuration nudges; the oldest give way. 0 means 64 MiB."""
    dead_letter_max_bytes: _StreamSize = 0
    """The most bytes of dead letters. Where they are full, a further one stays in its mailbox. 0 means 2 GiB."""
    journal_max_bytes: _StreamSize = 0
    """The most bytes of the journals of running turns, kept for seven days at most. A full one takes no further record.
    0 means 2 GiB."""
    replicas: Annotated[int, AfterValidator(_replicas), FromText()] = 0
    """How many members keep a copy of everything: 1 or 3; 0 means 3 in a cluster of our own and 1 elsewhere."""
    cluster: ClusterSection = ClusterSection()
    """Embedded only."""
    leaf: LeafSection = LeafSection()
    """Embedded only."""
    debug: Annotated[object, Later(default=False)] = False
    tracker_retention: Annotated[object, Later()] = None
    store_max_bytes: Annotated[object, Later()] = None
    tracker_log_max_bytes: Annotated[object, Later()] = None
    tracker_vectors_max_bytes: Annotated[object, Later()] = None
    pages_log_max_bytes: Annotated[object, Later()] = None
    usage_log_max_bytes: Annotated[object, Later()] = None
