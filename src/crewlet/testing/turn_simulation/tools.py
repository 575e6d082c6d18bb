"""The tools of the simulated seats: some act outside, some fail, some hang, one looks inside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Final

from crewlet.testing.turn_simulation.outside import Outside
from crewlet.tools import Annotations, CallContext, Hint, ServerStatus, ServerSummary, Tool, ToolResult, ToolRow

__all__ = ["OUTSIDE_TOOLS", "PlayedSurface", "PlayedToolHost", "played_tools"]

OUTSIDE_TOOLS: Final = ("post", "mark", "broken", "slow")
_SERVER: Final = "board"
_HANGS_S: Final = 600.0
_ONE_TEXT: Final = {"type": "object", "properties": {"token": {"type": "string"}}, "required": ["token"]}


class OutsideTool:
    """Acts outside by its name: ``post`` once each time, ``mark`` to the same end however often.

    ``broken`` fails before it has done anything, ``slow`` acts and does not come back.
    """

    def __init__(self, name: str, outside: Outside, owner: str, step: Callable[[], Awaitable[None]]) -> None:
        self._outside = outside
        self._owner = owner
        self._step = step
        self._idempotent = name == "mark"
        self._row = ToolRow(
            name=name,
            description=f"The tool {name}.",
            input_schema=_ONE_TEXT,
            origin=f"mcp:{_SERVER}",
            server=_SERVER,
            annotations=Annotations(idempotent=Hint.YES if self._idempotent else Hint.UNKNOWN),
        )

    @property
    def row(self) -> ToolRow:
        """How it is described."""
        return self._row

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """Do it; nothing stands between the engine's last check and the effect."""
        token = str(arguments["token"])
        if self._row.name == "broken":
            return ToolResult("it does not work", is_error=True)
        self._outside.acted(token, context, self._owner, idempotent=self._idempotent)
        await self._step()
        await asyncio.sleep(_HANGS_S if self._row.name == "slow" else Random(token).choice((0.0, 0.3, 3.0)))
        await self._step()
        return ToolResult("done")


class NotesTool:
    """Looks at something inside, which reads differently in each process."""

    def __init__(self, owner: str, step: Callable[[], Awaitable[None]]) -> None:
        self._owner = owner
        self._step = step
        self._row = ToolRow(name="notes", description="Your notes.", input_schema={"type": "object"})

    @property
    def row(self) -> ToolRow:
        """How it is described."""
        return self._row

    async def call(self, arguments: Mapping[str, object], context: CallContext) -> ToolResult:
        """What is noted."""
        await self._step()
        return ToolResult(f"page {arguments.get('page')} for {context.handle} as {self._owner} reads it")


def played_tools(outside: Outside, owner: str, step: Callable[[], Awaitable[None]]) -> list[Tool]:
    """One process's."""
    return [*(OutsideTool(name, outside, owner, step) for name in OUTSIDE_TOOLS), NotesTool(owner, step)]


class PlayedSurface:
    """The tools of a seat: those without a server are built in."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.row.name: tool for tool in tools}

    def builtins(self) -> list[Tool]:
        """Those that the engine serves."""
        return [tool for tool in self._tools.values() if not tool.row.server]

    def servers(self) -> list[ServerSummary]:
        """The one server."""
        return [ServerSummary(_SERVER, len(self.server_tools(_SERVER)))]

    def server_tools(self, server: str) -> list[ToolRow]:
        """What it offers."""
        return [tool.row for tool in self._tools.values() if tool.row.server == server]

    def find(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)


class PlayedToolHost:
    """Stands where a node's tool servers would: each seat has the same surface, at once."""

    def __init__(self, surface: PlayedSurface) -> None:
        self._surface = surface

    async def open_seat(self, *_: object) -> PlayedSurface:
        """The seat's tools."""
        await asyncio.sleep(0)
        return self._surface

    async def close_seat(self, *_: object) -> None:
        """Nothing was started."""
        await asyncio.sleep(0)

    def status(self) -> list[ServerStatus]:
        """Nothing to tell."""
        return []
