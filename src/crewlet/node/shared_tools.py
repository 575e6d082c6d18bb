"""Starting the tool servers that all seats share: waited for, but not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from crewlet.base import limits
from crewlet.base.tasks import Tasks
from crewlet.tools import ToolHost, ToolServerSpec

__all__ = ["start_shared_tools"]

_log = structlog.get_logger(__name__)


async def start_shared_tools(
    tools: ToolHost, specs: Sequence[ToolServerSpec], tasks: Tasks, *, wait_s: float = limits.SHARED_TOOLS_BOOT_WAIT_S
) -> None:
    """Start the shared servers; return once each has started or failed, or after ``wait_s``.

    A seat should not begin with an empty surface, so its node waits for them. A server that hangs at its start must not
    keep the whole node from working, so it does not wait long: the rest come in beside it, under ``tasks``, and their
    tools appear when they are there.
    """
    starting = tasks.start("shared_tools", tools.start_shared(specs))
    done, _ = await asyncio.wait({starting}, timeout=wait_s)
    if done:
        starting.result()
        return
    slow = [row.name for row in tools.status() if not row.started and not row.failed]
    _log.warning("tool_servers_still_starting", servers=slow, waited_s=wait_s)
