"""The node file's stream section: the broker that the engine starts itself, or one that it dials."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

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
