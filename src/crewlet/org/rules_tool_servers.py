"""Tool servers: complete for their transport, uniquely named, free of literal credentials, and known where named."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Final

from crewlet.base.errors import Problem
from crewlet.org.credentials import credential_in_url, literal_credentials, reference_needed
from crewlet.org.document import CompanyDocument
from crewlet.org.document_tool_servers import ToolServerDocument, Transport
from crewlet.org.walk import Chart

__all__ = ["tool_server_problems"]

_RESERVED: Final = "crewlet"
_FIELDS: Final[Mapping[Transport, tuple[str, ...]]] = {"stdio": ("command", "args", "env"), "http": ("url", "headers")}
_OTHER: Final[Mapping[Transport, Transport]] = {"stdio": "http", "http": "stdio"}


def tool_server_problems(document: CompanyDocument, chart: Chart) -> Iterator[Problem]:
    """What is wrong with the servers themselves, then with the ``mcp_env`` of seats and units."""
    first: dict[str, str] = {}
    for index, server in enumerate(document.mcp_servers):
        path = f"mcp_servers[{index}]"
        if server.name == _RESERVED:
            yield Problem(f"{path}.name", f"{_RESERVED!r} is reserved", "choose another name")
        elif server.name in first:
            yield Problem(f"{path}.name", f"{server.name!r} is already {first[server.name]}", "choose another name")
        first.setdefault(server.name, path)
        yield from _server(path, server)
    servers = {server.name: server for server in document.mcp_servers}
    placed = (
        *((unit.path, unit.written.mcp_env) for unit in chart.units),
        *((role.path, role.written.mcp_env) for role in chart.roles),
    )
    for path, variables in placed:
        yield from _mcp_env(f"{path}.mcp_env", variables, servers)


def _server(path: str, server: ToolServerDocument) -> Iterator[Problem]:
    required = _FIELDS[server.transport][0]
    if not getattr(server, required):
        yield Problem(f"{path}.{required}", f"is required for transport {server.transport}")
    for field in _FIELDS[_OTHER[server.transport]]:
        if getattr(server, field):
            yield Problem(f"{path}.{field}", f"is for transport {_OTHER[server.transport]} only", "remove it")
    if server.url and not server.url.startswith(("http://", "https://", "${")):
        yield Problem(f"{path}.url", "must be an http or https address", "or one ${VAR}")
    if credential_in_url(server.url):
        yield reference_needed(f"{path}.url", "carries a literal credential")
    yield from literal_credentials(f"{path}.env", server.env)
    yield from literal_credentials(f"{path}.headers", server.headers)


def _mcp_env(
    path: str, by_server: Mapping[str, Mapping[str, str]], servers: Mapping[str, ToolServerDocument]
) -> Iterator[Problem]:
    for name, variables in by_server.items():
        yield from literal_credentials(f"{path}.{name}", variables)
        if name not in servers:
            close = difflib.get_close_matches(name, servers, n=1)
            yield Problem(
                f"{path}.{name}",
                f"no tool server {name!r} in mcp_servers",
                f"did you mean {close[0]!r}?" if close else "add it there, or remove this",
            )
        elif servers[name].shared:
            yield Problem(
                f"{path}.{name}",
                f"tool server {name!r} is shared, so no seat has variables of its own there",
                "set `shared: false` on the server",
            )
