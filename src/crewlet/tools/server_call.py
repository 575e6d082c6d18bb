"""One call on its way to a tool server's owner, and the words for one that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from crewlet.tools.contract import ToolResult

__all__ = ["ENDED", "ServerCall", "failed"]

ENDED: Final = "it ended"
"""The reason of a life whose server went away without a word."""


class ServerCall:
    """A call in a server's queue. Cancelling the one who waits for the answer abandons the call, wherever it is."""

    __slots__ = ("_abandon", "answer", "arguments", "tool")

    def __init__(self, tool: str, arguments: Mapping[str, object]) -> None:
        self.tool = tool
        self.arguments = arguments
        self.answer: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        self._abandon: Callable[[], None] | None = None
        self.answer.add_done_callback(self._answered)

    def reply(self, result: ToolResult) -> None:
        """Give the answer, unless it has one or nobody waits for it."""
        if not self.answer.done():
            self.answer.set_result(result)

    def on_abandoned(self, abandon: Callable[[], None]) -> None:
        """What to do once nobody waits for the answer any more."""
        self._abandon = abandon

    def _answered(self, answer: asyncio.Future[ToolResult]) -> None:
        if answer.cancelled() and self._abandon is not None:
            self._abandon()


def failed(where: str, reason: str, *, unknown: bool = False) -> ToolResult:
    """A call that failed, in the words that a model gets to read; ``where`` is ``server/tool``.

    ``unknown``: it was sent, and may have had its effect.
    """
    return ToolResult(f"MCP tool error ({where}): {reason}", is_error=True, unknown=unknown)
