"""The node file as it is written (Tier A): what one process on one machine needs to know, read once at its start."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from crewlet.base import limits
from crewlet.base.node_roles import NODE_ROLES
from crewlet.config.node_file_part import FromText
from crewlet.config.node_file_stream import StreamSection
from crewlet.org import DocumentPart, Later, Required, refused

__all__ = [
    "ApiSection",
    "AuthSection",
    "LoggingSection",
    "NodeFile",
    "NodeSection",
    "StoreSection",
    "TokenSection",
    "check_node_id",
]

_NODE_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PRINTABLE: Final = re.compile(r"[!-~]+")


def check_node_id(text: str) -> str:
    """``text``, if it may name a node. Raises the validator's error."""
    if _NODE_ID.fullmatch(text) is None or len(text) > limits.NODE_ID_MAX_CHARS:
        raise refused(
            "is no valid node id",
            f"a letter or digit, then letters, digits, `.`, `_`, `-`; at most {limits.NODE_ID_MAX_CHARS} characters",
        )
    return text


def _known_roles(roles: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [role for role in roles if role not in NODE_ROLES]
    if unknown:
        raise refused(f"unknown role {unknown[0]!r}", f"known: {', '.join(NODE_ROLES)}")
    return tuple(role for role in NODE_ROLES if role in roles)


def _trimmed_labels(labels: dict[str, str]) -> dict[str, str]:
    trimmed = {key.strip(): value.strip() for key, value in labels.items()}
    if len(trimmed) < len(labels):
        raise refused("two labels have the same name once spaces are taken off", "rename one")
    if "" in trimmed:
        raise refused("a label has no name", "give it one")
    return trimmed


def _ttl(seconds: int) -> int:
    if seconds and not limits.LEASE_TTL_MIN_S <= seconds <= limits.LEASE_TTL_MAX_S:
        remedy = f"write {limits.LEASE_TTL_MIN_S:g} to {limits.LEASE_TTL_MAX_S:g}, or 0 for {limits.LEASE_TTL_S:g}"
        raise refused(f"{seconds} s is no length for a lease", remedy)
    return seconds


def _printable(token: str) -> str:
    if _PRINTABLE.fullmatch(token) is None:
        raise refused("must be printable ASCII without spaces", "it travels in an HTTP header")
    return token


class NodeSection(DocumentPart):
    """Who this process is."""

    id: str = ""
    """Stable across restarts. Empty: the variable CREWLET_NODE_ID, or else node-0."""
    roles: Annotated[tuple[str, ...], Field(strict=False), AfterValidator(_known_roles)] = ()
    """What this node does: ingress (routes what arrives), seats (runs them), workers (duties), data. Empty: all."""
    labels: Annotated[dict[str, str], AfterValidator(_trimmed_labels)] = Field(default_factory=dict[str, str])
    """What a role's placement may ask for."""
    max_concurrent: Annotated[int, Field(ge=0), FromText()] = limits.MAX_CONCURRENT_TURNS
    """Turns that run at once; 0 means the default."""


class StoreSection(DocumentPart):
    """The node's own database."""

    path: str = ""
    """Owned by this process alone. Empty: crewlet.db in the data directory."""
    max_open_conns: Annotated[object, Later()] = None
    objects: Annotated[object, Later()] = None
    scratch: Annotated[bool, FromText()] = False
    """A satellite only, and required there: the database is a new one at every start."""
    replicated_path: Annotated[object, Later()] = None
    snapshot_dir: Annotated[object, Later()] = None
    busy_timeout_seconds: Annotated[object, Later(5)] = 5


class CoordinationSection(DocumentPart):
    """Where leases live; every other shared record lives with the stream, whatever is said here."""

    type: Literal["local", "embedded-kv"] = "local"
    """``local``: in this process, for a node that is alone on its stream. ``embedded-kv``: with the stream."""
    lease_ttl_seconds: Annotated[int, AfterValidator(_ttl), FromText()] = 0
    """How soon a dead node's seats are free; 0 means the default."""


class TokenSection(DocumentPart):
    """One bearer token of the HTTP API."""

    id: Required
    """Whom what it does is attributed to."""
    token: Annotated[Required, AfterValidator(_printable)] = Field(repr=False)


class AuthSection(DocumentPart):
    """Who may use the HTTP API."""

    tokens: Annotated[tuple[TokenSection, ...], Field(strict=False)] = ()
    """None on a loopback address: a first one is made and put into the data directory."""
    allow_anonymous_read: Annotated[bool, FromText()] = False
    """Let reads pass without a token."""
    disabled: Annotated[object, Later(default=False)] = False


class ApiSection(DocumentPart):
    """The HTTP API's address and tokens."""

    host: Required = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535), FromText()] = 8000
    """0: no listener."""
    external_url: Annotated[object, Later()] = None
    auth: AuthSection = AuthSection()


class LoggingSection(DocumentPart):
    """What is logged, and how."""

    level: Literal["debug", "info", "warn", "error"] = "info"
    format: Literal["console", "text", "json"] = "console"
    stderr: Annotated[object, Later(default=True)] = True
    file: Annotated[object, Later()] = None


class NodeFile(DocumentPart):
    """One node. Relative paths count from the folder of this file; ``${VAR}`` may stand in any text."""

    data_dir: Required = "./.crewlet"
    """Holds what the node keeps, unless a path below says otherwise: database, streams, operator token."""
    node: NodeSection = NodeSection()
    stream: StreamSection = StreamSection()
    store: StoreSection = StoreSection()
    coordination: CoordinationSection = CoordinationSection()
    api: ApiSection = ApiSection()
    logging: LoggingSection = LoggingSection()
    retention: Annotated[object, Later()] = None
    secrets: Annotated[object, Later()] = None
