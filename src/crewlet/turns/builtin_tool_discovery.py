"""The discovery pair: a prompt names tool servers only, and these two calls open what they offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from crewlet.tools import CallContext, Tool, ToolResult, ToolRow
from crewlet.turns.setup import ToolSurface

__all__ = ["ACTIVATE_TOOL", "LIST_SERVER_TOOLS", "ActivateTool", "ListServerTools"]

LIST_SERVER_TOOLS: Final = "list_mcp_server_tools"
ACTIVATE_TOOL: Final = "activate_tool"

_LIST_ROW: Final = ToolRow(
    name=LIST_SERVER_TOOLS,
    description=f"List the tools of one tool server. A tool listed here is callable once {ACTIVATE_TOOL} named it.",
    input_schema={
        "type": "object",
        "properties": {"server": {"type": "string", "description": "The name of a tool server."}},
        "required": ["server"],
    },
)
_ACTIVATE_ROW: Final = ToolRow(
    name=ACTIVATE_TOOL,
    description="Make one tool of a tool server callable, from your next message to the end of this turn.",
    input_schema={
        "type": "object",
        "properties": {"name": {"type": "string", "description": f"A name that {LIST_SERVER_TOOLS} gave."}},
        "required": ["name"],
    },
)


class ListServerTools:
    """Lists what one server offers."""

    def __init__(self, surface: ToolSurface) -> None:
        self._surface = surface

    @property
    def row(self) -> ToolRow:
        """How the model is told of it."""
        return _LIST_ROW

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """The server's tools, a line each, whole; an error names the servers that exist."""
        wanted = str(arguments["server"])
        servers = {server.name: server.failed for server in self._surface.servers()}
        if wanted not in servers:
            known = ", ".join(servers) or "there is none"
            return ToolResult(f"no tool server is called `{wanted}` (known: {known})", is_error=True)
        if servers[wanted]:
            return ToolResult(f"the tool server `{wanted}` does not serve now: {servers[wanted]}", is_error=True)
        lines = [f"- {row.name}: {row.description}" for row in self._surface.server_tools(wanted)]
        return ToolResult("\n".join(lines) or f"the tool server `{wanted}` offers no tools")


class ActivateTool:
    """Adds a server's tool to ``activated``, which the turn's execute phases share."""

    def __init__(self, surface: ToolSurface, activated: dict[str, Tool]) -> None:
        self._surface = surface
        self._activated = activated

    @property
    def row(self) -> ToolRow:
        """How the model is told of it."""
        return _ACTIVATE_ROW

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """Activate it; harmless when repeated."""
        name = str(arguments["name"])
        tool = self._surface.find(name)
        if tool is None:
            return ToolResult(f"no tool is called `{name}`: {LIST_SERVER_TOOLS} names what there is", is_error=True)
        if not tool.row.is_mcp:
            return ToolResult(f"`{name}` is built in: call it as it is")
        self._activated[name] = tool
        return ToolResult(f"`{name}` is callable from your next message on. {tool.row.description}".rstrip())
