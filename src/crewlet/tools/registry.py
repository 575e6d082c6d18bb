"""What a seat may call, by name: the built-in tools, the node's shared servers, and the seat's own servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from crewlet.tools.contract import CallContext, Tool, ToolResult, ToolRow
from crewlet.tools.tool_rows import qualified

__all__ = ["SeatTools", "Served", "ServerSummary", "SharedTools", "name_tools"]


class Served(Protocol):
    """What the registry needs of a server."""

    @property
    def name(self) -> str:
        """Its name in the company document."""
        ...

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What it serves; empty if it never started."""
        ...

    @property
    def error(self) -> str:
        """Why it does not serve now; empty where it does."""
        ...


class ServerSummary(NamedTuple):
    """A server as a prompt names it. ``failed`` is the reason why it does not serve, or empty."""

    name: str
    tools: int
    failed: str = ""


@dataclass(frozen=True, slots=True)
class NamedTool:
    """A tool under another name than its server's."""

    row: ToolRow
    tool: Tool

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """As the tool itself."""
        return await self.tool.call(arguments, context)


class SharedTools:
    """The built-ins and the shared servers of a node. ``servers`` is asked anew each time: servers come and go."""

    def __init__(self, builtins: Iterable[Tool] = (), servers: Callable[[], Sequence[Served]] = tuple) -> None:
        self._builtins: dict[str, Tool] = {}
        self._servers = servers
        for tool in builtins:
            self.add_builtin(tool)

    def add_builtin(self, tool: Tool) -> None:
        """Register a tool of the engine's own. Raises ``ValueError`` where its name is taken."""
        if tool.row.name in self._builtins:
            raise ValueError(f"two built-in tools are named {tool.row.name!r}")
        self._builtins[tool.row.name] = tool

    def builtins(self) -> list[Tool]:
        """The engine's own tools, in the order of their registration."""
        return list(self._builtins.values())

    def servers(self) -> Sequence[Served]:
        """The shared servers, failed ones included."""
        return self._servers()

    def seat(self, own: Callable[[], Sequence[Served]] = tuple) -> SeatTools:
        """The view of a seat that has servers of its own."""
        return SeatTools(self, own)


class SeatTools:
    """One seat's surface. It reads through to the servers, so a server that restarted shows its present tools."""

    def __init__(self, shared: SharedTools, own: Callable[[], Sequence[Served]] = tuple) -> None:
        self._shared = shared
        self._own = own

    def builtins(self) -> list[Tool]:
        """The engine's own tools."""
        return self._shared.builtins()

    def servers(self) -> list[ServerSummary]:
        """All servers of this seat by name; a seat's own replaces a shared one of the same name."""
        return [
            ServerSummary(server.name, len(self.server_tools(server.name)), server.error)
            for server in sorted(self._visible(), key=lambda server: server.name)
        ]

    def server_tools(self, server: str) -> list[ToolRow]:
        """The rows of one server, under the names that :meth:`find` knows; empty where there is no such server."""
        return [tool.row for tool in self._served().values() if tool.row.server == server]

    def find(self, name: str) -> Tool | None:
        """The tool of that name. Built-ins come first."""
        builtin = next((tool for tool in self.builtins() if tool.row.name == name), None)
        return builtin or self._served().get(name)

    def _visible(self) -> list[Served]:
        own = list(self._own())
        names = {server.name for server in own}
        return [*own, *(server for server in self._shared.servers() if server.name not in names)]

    def _served(self) -> dict[str, Tool]:
        own = list(self._own())
        names = {server.name for server in own}
        shared = [server for server in self._shared.servers() if server.name not in names]
        return name_tools({tool.row.name for tool in self.builtins()}, own, shared)


def name_tools(builtins: set[str], own: Sequence[Served], shared: Sequence[Served]) -> dict[str, Tool]:
    """Each served tool under its one name.

    A seat's own tool hides a shared one of the same name. Servers of one kind that serve the same name are told apart
    as ``server__tool``, all of them, so that no name depends on which server came first; so is a tool that has the
    name of a built-in.
    """
    own_tools = _told_apart(own, builtins)
    shared_tools = _told_apart(shared, builtins)
    return {**shared_tools, **own_tools}


def _told_apart(servers: Sequence[Served], taken: set[str]) -> dict[str, Tool]:
    tools = [tool for server in sorted(servers, key=lambda server: server.name) for tool in server.tools]
    times = Counter(tool.row.name for tool in tools)
    named: dict[str, Tool] = {}
    for tool in tools:
        row = tool.row
        if times[row.name] > 1 or row.name in taken:
            row = replace(row, name=qualified(row.server, row.name))
        # A server that lists a name twice serves its first.
        named.setdefault(row.name, tool if row is tool.row else NamedTool(row, tool))
    return named
