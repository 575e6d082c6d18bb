"""The node file's stream section: the broker that the engine starts itself, or one that it dials."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from crewlet.base import limits
from crewlet.config.node_file_part import FromText, parse_duration_s
from crewlet.org import DocumentPart, Later, refused

__all__ = ["StreamSection", "TlsSection"]


def _one_replica(replicas: int) -> int:
    if replicas != 1:
        raise refused("anything but one replica is not supported yet", "remove this field")
    return replicas


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


class StreamSection(DocumentPart):
    """Where mail and records are kept."""

    type: Literal["embedded", "nats"] = "embedded"
    """``embedded``: the engine runs its own broker on the loopback interface. ``nats``: it dials ``url``."""
    store_dir: str | None = None
    """Embedded only. Absent: stream in the data directory. Empty (""): in memory, lost at the end of the process."""
    server_binary: str = ""
    """Embedded only: the nats-server program, where the packaged one does not serve this machine."""
    sync: Annotated[str, AfterValidator(_sync)] = "always"
    """Embedded only: when what was acknowledged is on the disk. A duration needs three replicas."""
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
    replicas: Annotated[int, AfterValidator(_one_replica), FromText()] = 1
    debug: Annotated[object, Later(default=False)] = False
    cluster: Annotated[object, Later()] = None
    leaf: Annotated[object, Later()] = None
    tracker_retention: Annotated[object, Later()] = None
    store_max_bytes: Annotated[object, Later()] = None
    tracker_log_max_bytes: Annotated[object, Later()] = None
    tracker_vectors_max_bytes: Annotated[object, Later()] = None
    pages_log_max_bytes: Annotated[object, Later()] = None
    usage_log_max_bytes: Annotated[object, Later()] = None
