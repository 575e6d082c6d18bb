"""The tools that a worker may be given: of its agent's, those that change nothing that others see. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crewlet.tools import Hint, ServerSummary, Tool, ToolRow
from crewlet.turns.builtin_tool_discovery import ACTIVATE_TOOL, LIST_SERVER_TOOLS
from crewlet.turns.delivery import surface_of
from crewlet.turns.setup import ToolSurface

__all__ = ["DELEGATE", "WorkerSurface", "may_be_granted"]

DELEGATE: Final = "delegate"
_NEVER: Final = frozenset({DELEGATE, "run_sandbox", "a2a_ask", LIST_SERVER_TOOLS, ACTIVATE_TOOL})


def may_be_granted(row: ToolRow) -> bool:
    """Whether a worker may call it: not what asks others, starts others, or writes anywhere by its annotations."""
    if row.name in _NEVER or surface_of(row):
        return False
    return row.is_mcp or row.annotations.open_world is not Hint.YES


class WorkerSurface:
    """An agent's tools as its workers see them."""

    def __init__(self, surface: ToolSurface, wants: Sequence[str] = ()) -> None:
        self._surface = surface
        self._wants = frozenset(wants)

    def builtins(self) -> list[Tool]:
        """The engine's own that may be granted; where the worker asks for some, those."""
        return [
            tool
            for tool in self._surface.builtins()
            if may_be_granted(tool.row) and (not self._wants or tool.row.name in self._wants)
        ]

    def servers(self) -> list[ServerSummary]:
        """The servers that have anything for a worker."""
        counted = [(each, len(self.server_tools(each.name))) for each in self._surface.servers()]
        return [each._replace(tools=count) for each, count in counted if count]

    def server_tools(self, server: str) -> list[ToolRow]:
        """Of one server, what may be granted."""
        return [row for row in self._surface.server_tools(server) if may_be_granted(row)]

    def find(self, name: str) -> Tool | None:
        """The tool of that name, if it may be granted."""
        tool = self._surface.find(name)
        return tool if tool is not None and may_be_granted(tool.row) else None

    def wanted(self) -> dict[str, Tool]:
        """Those of tool servers that the worker asked for by name: active from its first round on."""
        found = {name: self.find(name) for name in sorted(self._wants)}
        return {name: tool for name, tool in found.items() if tool is not None and tool.row.is_mcp}
