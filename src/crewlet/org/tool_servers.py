"""A tool server of the normalised organisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crewlet.org.document_tool_servers import Transport

__all__ = ["ToolHints", "ToolServer"]


@dataclass(frozen=True, slots=True)
class ToolHints:
    """What the document says of one tool; ``None`` leaves it to what the server advertises."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServer:
    """One MCP server. Texts keep their ``${VAR}`` references; a stdio server runs in the document's folder."""

    name: str
    transport: Transport
    shared: bool
    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    url: str
    headers: Mapping[str, str] = field(repr=False)
    tool_prefix: str
    tool_annotations: Mapping[str, ToolHints]
    startup_timeout_s: float
    request_timeout_s: float
